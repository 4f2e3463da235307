"""The stand-in SDK `sim`: stock clang 14 behind mcc's command line, kernels run on x86-64.

Whatever it shows is simulated; it says nothing about mcc or an MTGPU.
"""

from mccprobe.targets.sim.build import SimBuildError, SimSdk, sim_sdk

__all__ = ["SimBuildError", "SimSdk", "sim_sdk"]
