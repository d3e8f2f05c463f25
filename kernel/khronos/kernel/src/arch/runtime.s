# What the compiler calls by name. In assembly: a loop in Rust would be compiled to a call of itself.
# Intel syntax.

.global memcpy
memcpy:
    mov rax, rdi
    mov rcx, rdx
    rep movsb
    ret

.global memmove
memmove:
    mov rax, rdi
    mov rcx, rdx
    mov r8, rdi
    sub r8, rsi
    cmp r8, rdx                      # overlapping, and to a higher address: backwards
    jb 1f
    rep movsb
    ret
1:  lea rdi, [rdi + rdx - 1]
    lea rsi, [rsi + rdx - 1]
    std
    rep movsb
    cld
    ret

.global memset
memset:
    mov r8, rdi
    mov eax, esi
    mov rcx, rdx
    rep stosb
    mov rax, r8
    ret

.global memcmp, bcmp
memcmp:
bcmp:
    xor ecx, ecx
1:  cmp rcx, rdx
    je 2f
    movzx eax, byte ptr [rdi + rcx]
    movzx r8d, byte ptr [rsi + rcx]
    inc rcx
    sub eax, r8d
    je 1b
    ret
2:  xor eax, eax
    ret

.global strlen
strlen:
    xor eax, eax
1:  cmp byte ptr [rdi + rax], 0
    je 2f
    inc rax
    jmp 1b
2:  ret

# Precompiled libraries name them; nothing unwinds.
.global rust_eh_personality, _Unwind_Resume
rust_eh_personality:
_Unwind_Resume:
    ud2
