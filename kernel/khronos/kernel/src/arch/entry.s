# Into the kernel and out of it: interrupts, exceptions and system calls leave the same frame, which
# `Frame` in frame.rs describes. Intel syntax.

.altmacro

# A stub for each vector: an error code, or 0 in its place, and the vector.
.macro stub vector
.balign 16
    .if (\vector == 8) || (\vector >= 10 && \vector <= 14) || (\vector == 17) || (\vector == 21) || (\vector == 29) || (\vector == 30)
    .else
    push 0
    .endif
    push \vector
    jmp enter
.endm

.balign 16
.global stubs
stubs:
.set number, 0
.rept 256
    stub %number
    .set number, number + 1
.endr

# Saves what Rust code may change. The stack is aligned: the CPU does that for interrupts.
.macro save
    push rax
    push rbx
    push rcx
    push rdx
    push rsi
    push rdi
    push rbp
    push r8
    push r9
    push r10
    push r11
    push r12
    push r13
    push r14
    push r15
    sub rsp, 512
    fxsave64 [rsp]
    ldmxcsr [rip + default_mxcsr]
    cld
.endm

enter:
    test qword ptr [rsp + 24], 3     # the code segment: from user mode?
    jz 1f
    swapgs
1:  save
    mov rdi, rsp
    mov rbp, rsp
    xor ebp, ebp
    call trap
    jmp leave

.global syscall_entry
syscall_entry:
    swapgs
    mov gs:[16], rsp
    mov rsp, gs:[8]
    push 0x23                        # as an interrupt would have pushed it
    push qword ptr gs:[16]
    push r11
    push 0x2b
    push rcx
    push rax                         # the call's number, which a restart needs
    push 0x100
    save
    mov rdi, rsp
    xor ebp, ebp
    call system_call

# Out of a frame at the top of the stack; interrupts are off.
.global leave
leave:
    fxrstor64 [rsp]
    add rsp, 512
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rbp
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rbx
    pop rax
    add rsp, 16
    test qword ptr [rsp + 8], 3
    jz 1f
    swapgs
1:
.global leave_iret
leave_iret:
    iretq

# NMI, on a stack of its own: it may come between an entry and its swapgs.
.balign 16
.global nmi_entry
nmi_entry:
    push 0
    push 2
    save
    mov ecx, 0xc0000101              # GS base: a kernel's is negative
    rdmsr
    xor ebx, ebx
    test edx, edx
    js 1f
    swapgs
    inc ebx
1:  mov rdi, rsp
    xor ebp, ebp
    call non_maskable
    test ebx, ebx
    jz 2f
    swapgs
2:  fxrstor64 [rsp]
    add rsp, 512
    pop r15
    pop r14
    pop r13
    pop r12
    pop r11
    pop r10
    pop r9
    pop r8
    pop rbp
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rbx
    pop rax
    add rsp, 16
    iretq

# switch(save: *mut u64 in rdi, load: u64 in rsi): to another kernel stack.
.global switch
switch:
    push rbp
    push rbx
    push r12
    push r13
    push r14
    push r15
    mov [rdi], rsp
    mov rsp, rsi
    pop r15
    pop r14
    pop r13
    pop r12
    pop rbx
    pop rbp
    ret

# Where a new thread begins: its function in r12, the argument in r13.
.global thread_begin
thread_begin:
    xor ebp, ebp
    mov rdi, r13
    call r12
    ud2

# copy_user(to in rdi, from in rsi, bytes in rdx) -> bytes not copied. A fault in it goes to
# `copy_user_fault`.
.global copy_user, copy_user_at, copy_user_end, copy_user_fault
copy_user:
    mov rcx, rdx
copy_user_at:
    rep movsb
copy_user_end:
copy_user_fault:
    mov rax, rcx
    ret

.section .rodata
.balign 4
default_mxcsr: .long 0x1f80
.section .text
