"""What the first bytes of an image tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.pictures import gif, jpeg, png, webp
from tests.tools.session import Session
from wave_agent.messages import Image
from wave_agent.tools.images import LARGEST, picture_in

IMAGES = {
    "png": (png(30, 20), "PNG", "image/png"),
    "jpeg": (jpeg(30, 20), "JPEG", "image/jpeg"),
    "jpeg with padding and a bare marker": (jpeg(30, 20, fill=b"\xff\xff\x01\xff\xd0"), "JPEG", "image/jpeg"),
    "gif": (gif(30, 20), "GIF", "image/gif"),
    "webp, lossy": (webp(30, 20, b"VP8 "), "WebP", "image/webp"),
    "webp, lossless": (webp(30, 20, b"VP8L"), "WebP", "image/webp"),
    "webp, extended": (webp(30, 20, b"VP8X"), "WebP", "image/webp"),
}
each_kind = pytest.mark.parametrize(("data", "kind", "media_type"), IMAGES.values(), ids=IMAGES)


@each_kind
def test_kind_and_size_are_in_the_header(data: bytes, kind: str, media_type: str) -> None:
    picture = picture_in(data)
    assert picture is not None
    assert (picture.kind, picture.media_type, picture.width, picture.height) == (kind, media_type, 30, 20)


@each_kind
def test_a_header_that_is_cut_off_is_no_image(data: bytes, kind: str, media_type: str) -> None:
    assert all(picture_in(data[:length]) is None for length in range(8))


@pytest.mark.parametrize(
    "data",
    [png(0, 20), gif(30, 0), b"\xff\xd8\xff\xe0\x00\x02text", webp(30, 20, b"VP8 ")[:20] + bytes(20), b"RIFF1234WAVE"],
)
def test_what_has_no_size_is_no_image(data: bytes) -> None:
    assert picture_in(data) is None


@given(st.sampled_from([b"\xff\xd8\xff", b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF1234WEBPVP8L"]), st.binary())
def test_no_bytes_break_it(magic: bytes, rest: bytes) -> None:
    picture = picture_in(magic + rest)
    assert picture is None or (picture.width > 0 and picture.height > 0)


@each_kind
async def test_a_model_that_takes_images_is_given_the_image(
    session: Session, data: bytes, kind: str, media_type: str
) -> None:
    session.images = True
    path = session.file("a", data)
    result = await session.call("Read", file_path="a")
    assert result.success
    assert result.content == f"{path}: {kind} image, 30 × 20 pixels, {len(data):,} bytes."
    (image,) = result.images
    assert (image.media_type, image.width, image.height) == (media_type, 30, 20)
    assert result.response["type"] == "image"
    assert result.response["file"]["dimensions"] == {"originalWidth": 30, "originalHeight": 20}


async def test_another_model_is_told_what_it_is_and_what_to_do(session: Session) -> None:
    data = png(30, 20)
    path = session.file("a.png", data)
    result = await session.call("Read", file_path="a.png")
    assert not result.ran
    assert result.content.startswith(f"{path} is a PNG image (30 × 20 pixels, {len(data):,} bytes), and this model is ")
    assert "models.NAME.images" in result.content
    assert not (await session.call("Write", file_path="a.png", content="x")).ran


@pytest.mark.parametrize("data", [gif(8001, 20), gif(30, 20) + bytes(LARGEST)], ids=["pixels", "bytes"])
async def test_an_image_that_servers_refuse_for_its_size_is_not_sent(session: Session, data: bytes) -> None:
    session.images = True
    session.file("a.gif", data)
    result = await session.call("Read", file_path="a.gif")
    assert not result.ran
    assert "too large to be shown" in result.content
    assert "resize" in result.content


async def test_an_image_takes_at_most_a_quarter_of_the_window(session: Session) -> None:
    session.images, session.window = True, 8000
    session.file("a.gif", gif(2000, 2000))
    result = await session.call("Read", file_path="a.gif")
    assert not result.ran
    assert "a quarter of the context window" in result.content
    session.window = 32_000
    assert (await session.call("Read", file_path="a.gif")).images


def test_the_tokens_of_an_image_grow_with_its_size_within_limits() -> None:
    sizes = [Image("image/png", "", side, side).tokens for side in (1, 300, 1000, 8000)]
    assert sizes == [100, 120, 1333, 3000]
