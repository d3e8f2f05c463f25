//! The state that an entry into the kernel saves: that of the interrupted program.

/// Code segment of user programs.
pub const USER_CODE: u64 = 0x2b;
/// Data segment of user programs.
pub const USER_DATA: u64 = 0x23;
/// Code segment of the kernel.
pub const KERNEL_CODE: u64 = 0x08;
/// Flags of a program that begins: interrupts on.
pub const INITIAL_FLAGS: u64 = 0x202;

/// The frame that entry.s makes, lowest address first.
#[repr(C, align(16))]
#[derive(Clone)]
#[allow(missing_docs, reason = "registers")]
pub struct Frame {
    /// As `fxsave64` writes it.
    pub fpu: [u8; 512],
    pub r15: u64,
    pub r14: u64,
    pub r13: u64,
    pub r12: u64,
    pub r11: u64,
    pub r10: u64,
    pub r9: u64,
    pub r8: u64,
    pub rbp: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rdx: u64,
    pub rcx: u64,
    pub rbx: u64,
    pub rax: u64,
    pub vector: u64,
    /// The error code; of a system call its number.
    pub error: u64,
    pub rip: u64,
    pub cs: u64,
    pub flags: u64,
    pub rsp: u64,
    pub ss: u64,
}

const _: () = assert!(size_of::<Frame>() == 512 + 22 * 8);

impl Frame {
    /// Whether the CPU was in user mode.
    pub fn is_user(&self) -> bool {
        self.cs & 3 != 0
    }

    /// A program that begins here, with this stack.
    pub fn user(rip: u64, rsp: u64) -> Self {
        let mut fpu = [0; 512];
        fpu[0..2].copy_from_slice(&0x37fu16.to_le_bytes()); // x87: all exceptions masked
        fpu[24..28].copy_from_slice(&0x1f80u32.to_le_bytes()); // SSE: the same
        Self {
            fpu,
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rbp: 0,
            rdi: 0,
            rsi: 0,
            rdx: 0,
            rcx: 0,
            rbx: 0,
            rax: 0,
            vector: 0,
            error: 0,
            rip,
            cs: USER_CODE,
            flags: INITIAL_FLAGS,
            rsp,
            ss: USER_DATA,
        }
    }
}
