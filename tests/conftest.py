"""For all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes, or takes to make up, says how busy the machine is and nothing about the code.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
