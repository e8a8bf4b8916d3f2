//! The CPU's counter, and the CPU's description of it.

/// The counter of a CPU, as the CPU describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuCounter {
    /// Whether it runs at a constant rate, independent of the CPU's frequency and sleep states.
    pub invariant: bool,
    /// The current value.
    pub now: u64,
}

impl CpuCounter {
    /// The counter of the current CPU.
    #[cfg(target_arch = "x86_64")]
    pub fn of_this_cpu() -> Self {
        use std::arch::x86_64::{__cpuid, _rdtsc};
        use std::sync::LazyLock;
        const FEATURES: u32 = 0x8000_0007;
        const INVARIANT: u32 = 1 << 8;
        // The value is constant, and a guest waits for its host to return it.
        static IS_INVARIANT: LazyLock<bool> = LazyLock::new(|| {
            // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
            #[allow(unused_unsafe, reason = "newer compilers know that")]
            unsafe {
                let known = __cpuid(0x8000_0000).eax >= FEATURES;
                known && __cpuid(FEATURES).edx & INVARIANT != 0
            }
        });
        // SAFETY: every x86-64 CPU has the instruction; it touches no memory.
        Self { invariant: *IS_INVARIANT, now: unsafe { _rdtsc() } }
    }

    /// The counter of the current CPU: the architecture guarantees one rate.
    #[cfg(target_arch = "aarch64")]
    pub fn of_this_cpu() -> Self {
        let now;
        // SAFETY: Linux lets programs read the virtual counter; no memory is touched.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) now, options(nomem, nostack)) };
        Self { invariant: true, now }
    }

    /// For CPUs that targets are not compiled for.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn of_this_cpu() -> Self {
        Self { invariant: false, now: 0 }
    }
}

/// Whether there is a counter.
pub(crate) const EXISTS: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The CPU's counter, which generated code also reads. Here it is read after all earlier
/// instructions.
#[cfg(target_arch = "x86_64")]
pub fn ticks() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: both instructions are part of x86-64 and touch no memory. Linux sets CR4.TSD, which
    // bars the second from user code, only if a process asks for it (prctl).
    unsafe {
        _mm_lfence();
        _rdtsc()
    }
}

/// The CPU's counter, which generated code also reads. Here it is read after all earlier
/// instructions.
#[cfg(target_arch = "aarch64")]
pub fn ticks() -> u64 {
    let ticks;
    // SAFETY: Linux lets user code read the virtual counter (CNTKCTL_EL1.EL0VCTEN); the
    // instructions touch no memory.
    unsafe {
        std::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack))
    };
    ticks
}

/// No counter that targets could read.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn ticks() -> u64 {
    0
}
