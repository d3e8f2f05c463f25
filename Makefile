# What cargo alone does not do: set-up, the demonstration, all checks, installation. `make` lists
# the targets.

PREFIX  ?= /usr/local
DESTDIR ?=
# Where the library for C goes: a distribution has a directory for each architecture.
LIBDIR  ?= $(PREFIX)/lib
# STRIP=no: `make install` leaves debug information where it is, as packagers want it.
STRIP   ?= yes
# TARGET=aarch64-unknown-linux-gnu: for another machine, by the cross compiler of that name.
TARGET  ?=
# DEBUG=yes: `make install` keeps debug information in files of its own, where gdb and perf look for
# it.
DEBUG   ?= no
CARGO   ?= cargo
# SETUP=no: install no Debian packages, run with what is there.
SETUP   ?= yes
# BPF=no: `profile --kernel` by perf events alone. BPF programs need clang, and headers of libelf and
# zlib, to be built.
BPF     ?= yes

# How cargo builds; `make test` has a profile of its own.
PROFILE ?= release

target  := $(or $(CARGO_TARGET_DIR),target)
# $(call into,PROFILE): where cargo puts what it builds so.
into     = $(target)/$(if $(TARGET),$(TARGET)/)$(if $(filter dev,$(1)),debug,$(1))
release := $(call into,$(PROFILE))
# The profile `dist` is for the command. Libraries are as their overheads were measured.
as      := $(if $(filter dist,$(PROFILE)),release,$(PROFILE))
shared  := $(call into,$(as))
gnu     := $(subst -unknown,,$(TARGET))
strip   := $(if $(gnu),$(gnu)-)strip
# How a program for that machine is run here, to write its manual pages.
runner  := $(if $(TARGET),qemu-$(firstword $(subst -, ,$(TARGET))))
# As cc and cargo look for them.
ifneq ($(TARGET),)
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
endif
root    := $(DESTDIR)$(PREFIX)
bash    := $(root)/share/bash-completion/completions
zsh     := $(root)/share/zsh/site-functions
fish    := $(root)/share/fish/vendor_completions.d
flags   := --locked --profile $(PROFILE) $(if $(TARGET),--target $(TARGET))
library-flags := $(subst profile $(PROFILE),profile $(as),$(flags))
preload := -p manycore-preload -p manycore-syscalls
# libbpf's own Makefile, which cargo runs, has a PREFIX and a LIBDIR: ours are not for it. rustc
# looks for archives of C only where it is told to.
archive := $(if $(filter static,$(BPF)),LIBBPF_SYS_LIBRARY_PATH=$(dir $(shell $(if $(gnu),$(gnu)-gcc,$(CC)) -print-file-name=libelf.a)))
unmade  := env -u MAKEFLAGS -u MFLAGS $(archive) $(CARGO)
plain   := $(if $(filter dist,$(PROFILE)),$(unmade) build $(library-flags) $(preload) && )$(unmade) build $(flags) -p manycore-cli $(if $(filter dist,$(PROFILE)),,$(preload))
# BPF=static: with libelf and zlib inside, so that the command needs no more than glibc.
bpf     := --features manycore-cli/bpf$(if $(filter static,$(BPF)),-static)
build   := $(plain) $(if $(filter yes static,$(BPF)),$(bpf))
setup    = $(if $(filter yes,$(SETUP)),@BPF=$(BPF) scripts/setup $(1))
# The same command as `build`, where what that takes is there: one without BPF programs does not
# replace one with them.
able     = $(plain) $(if $(filter yes,$(BPF)),$(shell command -v "$${CLANG:-clang}" >/dev/null && pkg-config --exists libelf zlib && echo '$(bpf)'))

# $(call put,BUILT,PLACE): installs a program or a library without its debug information, which is
# ten times as large.
define put
	install -D -m 755 $(if $(filter yes,$(STRIP)),-s --strip-program=$(strip)) $(1) $(2)
	$(if $(filter yes,$(DEBUG)),@install -d $(dir $(2)).debug && objcopy --only-keep-debug $(1) $(dir $(2)).debug/$(notdir $(2)).debug \
	    && objcopy --add-gnu-debuglink=$(dir $(2)).debug/$(notdir $(2)).debug $(2))
endef

version := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
capi    := crates/manycore-capi

.DEFAULT_GOAL := help
.PHONY: help build demo khronos test test-deep test-kernel test-khronos test-packages test-arm packages field integration-kyoto soak soak-servers bench bench-set docs install install-library clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the command and the libraries that it preloads, into target/release; BPF=no
	$(call setup,build)
	@$(build)

# Only what that takes, into target/demo: no BPF programs, so that cargo and a C compiler do, and not
# the commands that measure the library.
demo: ## build what it takes, then profile and improve a contended server; under a minute
	@$(CARGO) build --locked --profile demo --no-default-features -p manycore-cli -p manycore-preload
	@$(target)/demo/manycore demo

test: ## all checks; installs the Debian packages it needs when root; ends with the count
	$(call setup,test)
	@BPF=$(BPF) scripts/test

test-deep: ## what takes long: Miri, sanitizers, readers of files under any bytes; an hour or two
	$(call setup,deep)
	@scripts/test-deep

# What a kernel with logged reverse maps does, part by part with the time of each. It installs the
# Debian packages it needs when root.
test-kernel: ## Linux with LDU in QEMU: builds it four times, storms, compares, checks; some hours (PARTS, BOOTS)
	$(if $(filter yes,$(SETUP)),@$(MAKE) -s -C kernel/linux setup)
	@$(MAKE) -s -C kernel/linux test

khronos: ## KhronOS: builds it, boots it in QEMU, and leaves you at its shell; SMP=4, SYNC=mvrlu, MEMORY=512
	$(call setup,test)
	@kernel/khronos/run shell

test-khronos: ## KhronOS on 1 to 16 CPUs under each mechanism, with many processes at once; an hour
	$(call setup,test)
	@kernel/khronos/run test

# Seconds for each program under each lock.
SOAK ?= 300

soak: ## real servers under load, three locks, five minutes each (SOAK=seconds)
	$(call setup,test)
	@$(build)
	@MANYCORE_COMMAND=$(abspath $(release))/manycore MANYCORE_SOAK_SECONDS=$(SOAK) $(CARGO) test --locked --release -p manycore-tests --test soak long:: \
		-- --ignored --test-threads=1

soak-servers: ## network servers with their system calls moved, by each mechanism, five minutes each (SOAK=seconds)
	$(call setup,test)
	@$(build)
	@MANYCORE_SERVERS=all MANYCORE_SOAK_SECONDS=$(SOAK) MANYCORE_SYSCALLS_PRELOAD=$(abspath $(release))/libmanycore_syscalls.so \
		$(CARGO) test --locked --release -p manycore-tests --test servers -- --test-threads=1

# Another machine's packages take a cross compiler and an emulator.
packaging = $(if $(filter yes,$(SETUP)),@scripts/setup packages$(if $(filter-out $(shell dpkg --print-architecture),$(ARCH)), && scripts/setup arm))

packages: ## Debian packages and an archive that needs no installation, into target/packages; ARCH=arm64
	$(packaging)
	@scripts/release $(or $(ARCH),$(shell dpkg --print-architecture))

test-packages: ## packages are built twice, judged, and installed in a clean Debian; an hour; ARCH=arm64
	$(packaging)
	@scripts/test-packages

test-arm: ## the libraries and the command for AArch64, cross-built, and emulated with and without a machine; two hours
	$(if $(filter yes,$(SETUP)),@scripts/setup arm)
	@scripts/test-arm

field: ## programs that others wrote, under each kind of lock; half an hour, after `scripts/field --install`
	$(call setup,build)
	@$(build)
	@scripts/field

integration-kyoto: ## Kyoto Cabinet's own tests over the library's map, and ours beside CacheDB; its source by apt, a few minutes
	@integrations/kyoto/test

bench: ## measure what the project promises, on this machine
	$(call setup,bench)
	@$(build)
	@scripts/bench

bench-set: ## measure what the library's sets and indexes are to do; BUDGET=30m
	$(call setup,sets)
	@$(able) -p manycore-bench-peers --features manycore-bench-peers/c-libraries
	@$(release)/manycore bench goals --budget $(or $(BUDGET),30m)

docs: $(target)/tools/bin/mdbook ## the book, into docs/book
	@$< build docs

$(target)/tools/bin/mdbook:
	$(CARGO) install mdbook --version 0.5.4 --locked --no-default-features --features search --root $(target)/tools

install: install-library ## all of it: the command, man pages, completions, and what follows; PREFIX=, DESTDIR=, DEBUG=yes
	$(call setup,build)
	@$(build)
	$(call put,$(release)/manycore,$(root)/bin/manycore)
	$(call put,$(shared)/libmanycore_preload.so,$(root)/lib/manycore/libmanycore_preload.so)
	$(call put,$(shared)/libmanycore_syscalls.so,$(root)/lib/manycore/libmanycore_syscalls.so)
	$(runner) $(release)/manycore man --out $(root)/share/man/man1
	install -d $(bash) $(zsh) $(fish)
	$(runner) $(release)/manycore completions bash >$(bash)/manycore
	$(runner) $(release)/manycore completions zsh >$(zsh)/_manycore
	$(runner) $(release)/manycore completions fish >$(fish)/manycore.fish

library := $(DESTDIR)$(LIBDIR)

# One package makes libmanycore.a, with TimeStone in it, and libmanycore.so, which leaves that to
# libtimestone.so.
install-library: ## the libraries for C and C++: headers, static and shared, pkg-config; PREFIX=, DESTDIR=, LIBDIR=
	install -d $(library)/pkgconfig $(root)/include/manycore/compat
	@$(CARGO) rustc $(library-flags) -p manycore-capi --crate-type staticlib
	install -m 644 $(shared)/libmanycore_capi.a $(library)/libmanycore.a
	ln -sf libmanycore.a $(library)/libtimestone.a
	@$(CARGO) rustc $(library-flags) -p manycore-capi --no-default-features --crate-type cdylib
	@$(CARGO) rustc $(library-flags) -p timestone-capi --crate-type cdylib
	for name in manycore timestone; do \
	    install -m 755 $(shared)/lib$${name}_capi.so $(library)/lib$$name.so.$(version) && \
	    ln -sf lib$$name.so.$(version) $(library)/lib$$name.so.0 && \
	    ln -sf lib$$name.so.0 $(library)/lib$$name.so || exit; \
	done
	$(if $(filter yes,$(STRIP)),$(strip) --strip-unneeded $(library)/libmanycore.so.$(version) $(library)/libtimestone.so.$(version) && $(strip) --strip-debug $(library)/libmanycore.a)
	install -m 644 $(capi)/include/manycore/*.h $(root)/include/manycore
	install -m 644 $(capi)/include/manycore/compat/*.h $(root)/include/manycore/compat
	for pc in manycore manycore-rlu timestone; do \
	    sed 's|@PREFIX@|$(abspath $(PREFIX))|; s|@LIBDIR@|$(abspath $(LIBDIR))|; s|@VERSION@|$(version)|' \
	        $(capi)/$$pc.pc.in >$(library)/pkgconfig/$$pc.pc; \
	done
	install -D -m 644 $(capi)/tsan.supp $(root)/share/manycore/tsan.supp

clean: ## remove what was built
	$(CARGO) clean
	rm -rf docs/book
