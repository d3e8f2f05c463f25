# From the loader to Rust: in 32 bits without paging, by PVH or multiboot2; and in 16 bits, for all
# CPUs but the first. AT&T syntax.

.set BASE, 0xffffffff80000000
.set TRAMPOLINE, 0x8000

# PVH: a note of type 18 named Xen with the 32-bit entry.
.section .note.pvh, "a", @note
    .long 4, 4, 18
    .asciz "Xen"
    .long pvh_entry - BASE

# multiboot2: magic, i386, length, checksum; a tag with the entry's address; the end tag.
.section .multiboot2, "a", @progbits
multiboot_header:
    .long 0xe85250d6, 0, multiboot_end - multiboot_header
    .long -(0xe85250d6 + (multiboot_end - multiboot_header))
    .short 3, 0
    .long 12, multiboot_entry - BASE
    .long 0
    .short 0, 0
    .long 8
multiboot_end:

.section .text.boot, "ax", @progbits
.code32
.global pvh_entry
pvh_entry:
    movl $0x336ec578, %eax
.global multiboot_entry
multiboot_entry:
    cli
    cld
    movl %ebx, %edi             # where the loader's information is
    movl %eax, %esi             # by which protocol
    # The tables: the first 4 GB at 0 and in the direct map, the first 1 GB at the kernel's base.
    movl $(boot_pdpt - BASE + 3), %eax
    movl %eax, boot_pml4 - BASE
    movl %eax, boot_pml4 - BASE + 256 * 8
    movl $(boot_pdpt_high - BASE + 3), %eax
    movl %eax, boot_pml4 - BASE + 511 * 8
    movl $(boot_pd - BASE + 3), %eax
    movl %eax, boot_pdpt_high - BASE + 510 * 8
    xorl %ecx, %ecx
1:  movl %eax, boot_pdpt - BASE(, %ecx, 8)
    addl $4096, %eax
    incl %ecx
    cmpl $4, %ecx
    jne 1b
    xorl %ecx, %ecx
    movl $0x83, %eax            # present, writable, 2 MB
2:  movl %eax, boot_pd - BASE(, %ecx, 8)
    addl $0x200000, %eax
    incl %ecx
    cmpl $2048, %ecx
    jne 2b

# Into 64 bits. edi and esi pass through.
enter_long:
    movl $(boot_pml4 - BASE), %eax
    movl %eax, %cr3
    movl $0x6a0, %eax           # PAE, PGE, OSFXSR, OSXMMEXCPT; not OSXSAVE: no AVX
    movl %eax, %cr4
    movl $0xc0000080, %ecx      # EFER: SCE, LME, NXE
    movl $0x901, %eax
    xorl %edx, %edx
    wrmsr
    movl $0x80010033, %eax      # PG, WP, NE, ET, MP, PE
    movl %eax, %cr0
    lgdt boot_gdtr - BASE
    ljmpl $8, $(long_low - BASE)

.code64
long_low:
    movabsq $long_high, %rax
    jmpq *%rax
long_high:
    lgdt boot_gdtr_high(%rip)
    movl $16, %eax
    movl %eax, %ss
    movl %eax, %ds
    movl %eax, %es
    xorl %eax, %eax
    movl %eax, %fs
    movl %eax, %gs
    xorl %ebp, %ebp
    testl %esi, %esi            # 0: not the first CPU
    jz 1f
    leaq boot_stack_end(%rip), %rsp
    call boot_main
1:  # Another CPU takes a number and the stack that waits for it.
    movl $1, %edi
    lock xaddl %edi, ap_tickets(%rip)
    cmpl ap_stack_count(%rip), %edi
    jae 2f
    movq ap_stacks(%rip), %rax
    movq (%rax, %rdi, 8), %rsp
    call ap_main
2:  cli
    hlt
    jmp 2b

# Copied to TRAMPOLINE.
.global trampoline_start, trampoline_end
.code16
trampoline_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl TRAMPOLINE + trampoline_gdtr - trampoline_start
    movl $0x33, %eax
    movl %eax, %cr0
    ljmpl $24, $(ap_32 - BASE)
.balign 8
trampoline_gdtr:
    .short 4 * 8 - 1
    .long boot_gdt - BASE
trampoline_end:

.code32
ap_32:
    movl $16, %eax
    movl %eax, %ds
    movl %eax, %es
    movl %eax, %ss
    xorl %esi, %esi
    jmp enter_long

.code64
.section .rodata.boot, "a", @progbits
.balign 8
boot_gdt:                       # null, 64-bit code, data, 32-bit code
    .quad 0, 0x00af9b000000ffff, 0x00cf93000000ffff, 0x00cf9b000000ffff
boot_gdtr:
    .short 4 * 8 - 1
    .long boot_gdt - BASE
    .long 0
boot_gdtr_high:
    .short 4 * 8 - 1
    .quad boot_gdt

.section .bss.boot, "aw", @nobits
.balign 4096
.global boot_pml4
boot_pml4: .skip 4096
boot_pdpt: .skip 4096
boot_pdpt_high: .skip 4096
boot_pd: .skip 4 * 4096
boot_stack: .skip 65536
boot_stack_end:
.section .text
