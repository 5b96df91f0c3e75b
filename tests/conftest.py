"""For all tests."""

from hypothesis import HealthCheck, settings

# A deadline of 200 ms for an example, and one for making it up, say how busy the machine is, and nothing about the code.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
