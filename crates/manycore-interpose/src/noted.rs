/// Functions of libc to which a wrapper jumps after it has noted the call. They do not return to
/// their caller as others do: they never return, return more than once, or take as many arguments
/// as the caller passes.
///
/// `exported name = function`. The function notes the call from its arguments, and returns the
/// address to which the wrapper jumps.
#[macro_export]
macro_rules! noted {
    ($($name:ident = $note:path;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            #[unsafe(naked)]
            pub extern "C" fn $name() {
                // SAFETY: all registers with arguments are kept, and the stack is aligned for the
                // call; the jump leaves everything as the caller set it, except for a register that
                // carries no argument.
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!(
                    // A thread that is cancelled here, at whatever instruction, unwinds to the
                    // caller.
                    ".cfi_startproc",
                    "sub rsp, 56",
                    ".cfi_adjust_cfa_offset 56",
                    "mov [rsp], rdi", "mov [rsp + 8], rsi",
                    "mov [rsp + 16], rdx", "mov [rsp + 24], rcx",
                    "mov [rsp + 32], r8", "mov [rsp + 40], r9", "mov [rsp + 48], rax",
                    "call {note}",
                    "mov r11, rax",
                    "mov rdi, [rsp]", "mov rsi, [rsp + 8]",
                    "mov rdx, [rsp + 16]", "mov rcx, [rsp + 24]",
                    "mov r8, [rsp + 32]", "mov r9, [rsp + 40]", "mov rax, [rsp + 48]",
                    "add rsp, 56",
                    ".cfi_adjust_cfa_offset -56",
                    "jmp r11",
                    ".cfi_endproc",
                    note = sym $note,
                );
                #[cfg(target_arch = "aarch64")]
                // SAFETY: loads and stores keep the registers with arguments, and the stack pointer
                // stays a multiple of 16; the jump leaves everything as the caller set it, except
                // for a register that carries no argument.
                core::arch::naked_asm!(
                    ".cfi_startproc",
                    "stp x29, x30, [sp, #-96]!",
                    ".cfi_adjust_cfa_offset 96",
                    ".cfi_offset x29, -96",
                    ".cfi_offset x30, -88",
                    "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]",
                    "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]", "str x8, [sp, #80]",
                    "bl {note}",
                    "mov x16, x0",
                    "ldp x0, x1, [sp, #16]", "ldp x2, x3, [sp, #32]",
                    "ldp x4, x5, [sp, #48]", "ldp x6, x7, [sp, #64]", "ldr x8, [sp, #80]",
                    "ldp x29, x30, [sp], #96",
                    ".cfi_adjust_cfa_offset -96",
                    ".cfi_restore x29",
                    ".cfi_restore x30",
                    "br x16",
                    ".cfi_endproc",
                    note = sym $note,
                )
            }
        )*
    };
}
