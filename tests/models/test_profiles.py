"""Which models are small."""

import pytest

from wave_agent.models.profiles import SMALL_WINDOW, Profile, billions_in, profile_of


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen2.5-coder:1.5b", 1.5),
        ("Qwen2.5-Coder-1.5B-Instruct-Q4_K_M.gguf", 1.5),
        ("llama3.2:3b-instruct-q4_K_M", 3),
        ("smollm2:360m", 0.36),
        ("3B", 3),
        ("qwen3:30b-a3b", 30),
        ("org/model-2b_70b", 70),
        ("mixtral-8x7b", None),
        ("gpt-4.1-mini", None),
        ("claude-3-5b4", None),
        ("", None),
    ],
)
def test_the_size_in_a_name(name: str, billions: float | None) -> None:
    assert billions_in(name) == billions


@pytest.mark.parametrize(
    ("stated", "name", "window", "parameters", "profile"),
    [
        (None, "m", None, None, Profile.FULL),
        (None, "m", SMALL_WINDOW, None, Profile.SMALL),
        (None, "m", SMALL_WINDOW + 1, None, Profile.FULL),
        (None, "m", None, 1_777_088_000, Profile.SMALL),
        (None, "m", None, 7_615_616_512, Profile.FULL),
        (None, "m:1b", 131072, None, Profile.SMALL),
        (None, "m:1b", None, 7_615_616_512, Profile.FULL),
        (None, "m:70b", SMALL_WINDOW, None, Profile.SMALL),
        ("full", "m:1b", 4096, 1_000_000_000, Profile.FULL),
        ("small", "m:70b", 131072, None, Profile.SMALL),
    ],
)
def test_a_small_window_or_a_small_model_is_enough_and_the_settings_decide(
    stated: str | None, name: str, window: int | None, parameters: int | None, profile: Profile
) -> None:
    assert profile_of(stated, name, window, parameters) is profile
