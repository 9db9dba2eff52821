# Larder. `make` lists the targets. `make demo` and `make test` install what they miss on Debian 12 or 13.
.PHONY: help dev guide messages demo demo-reset install test test-unit test-web test-system test-browser test-gallery test-soak test-container lint types bench lock clean
AT ?=
VENV := build/venv
PYTHON := $(VENV)/bin/python
PYTEST := $(VENV)/bin/python -m pytest
# How many machines at a time; a file of tests stays on one. Two need a core each and 10 GiB of free memory.
MACHINES ?= $(shell awk -v cores=$$(nproc) '/^MemAvailable/ {print (cores > 1 && $$2 > 10485760) ? 2 : 1}' /proc/meminfo)
LANES = -n $(MACHINES) --dist loadfile --no-loadscope-reorder --durations=15
IMAGE := python3 -m deploy.image

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: $(VENV)/ready ## Serve the pages from a recorded box, with reload: http://127.0.0.1:8000/ (BOX=degraded; runs nothing)
	$(PYTHON) -m tests.dev --box $(or $(BOX),healthy)

guide: $(VENV)/ready browser-tools ## Take the pictures of the guide again
	$(PYTHON) -m tests.dev.guide_pictures

messages: $(VENV)/ready ## Bring the catalogues of translations up to date with templates and code
	$(PYTHON) -m tests.messages

demo: appliance-tools ## Build the appliance, boot it in QEMU, serve it on https://localhost:8443/
	$(IMAGE) demo

demo-reset: ## Forget the demo's disks
	$(IMAGE) demo-reset

install: ## Install or update Larder on this Debian 13 box (as root)
	deploy/install

# --- what development needs ---------------------------------------------------------------------------------
VENV_PACKAGE = $(shell python3 -c 'import ensurepip' 2>/dev/null || echo python3-venv=python3-venv)

appliance-tools:
	deploy/image/need $(VENV_PACKAGE)
	deploy/image/need qemu-system-x86_64=qemu-system-x86 qemu-img=qemu-utils mmdebstrap mkfs.ext4=e2fsprogs ssh=openssh-client /usr/share/keyrings/debian-archive-keyring.gpg=debian-archive-keyring

# QEMU as a computer that uses a disk over iSCSI.
ISCSI_DRIVE = /usr/lib/$(shell uname -m)-linux-gnu/qemu/block-iscsi.so

browser-tools:
	deploy/image/need chromium age smbclient nfs-ls=libnfs-utils iscsi-ls=libiscsi-bin $(ISCSI_DRIVE)=qemu-block-extra fc-list=fontconfig

$(VENV)/ready: requirements-dev.lock
	deploy/image/need $(VENV_PACKAGE)
	rm -rf $(VENV)
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	touch $@

# Rewriting the asserts of all tests takes each of two processes six seconds: keep what was compiled.
unexport PYTHONDONTWRITEBYTECODE

# --- checks -------------------------------------------------------------------------------------------------
lint: $(VENV)/ready ## Check style
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

types: $(VENV)/ready ## Check types
	$(VENV)/bin/mypy

ifneq ($(AT),)
test: $(VENV)/ready appliance-tools browser-tools
	$(PYTEST) $(AT)
else
test: lint types appliance-tools browser-tools ## Check everything (AT=tests/web/jobs/test_jobs.py: only that)
	$(PYTEST) -n 2 tests/unit tests/web tests/gallery
	$(PYTEST) $(LANES) tests/system tests/browser
endif

test-unit: $(VENV)/ready ## Run the unit tests
	$(PYTEST) -n 2 $(or $(AT),tests/unit)

test-web: $(VENV)/ready ## Run the tests of pages and worker, without a machine
	$(PYTEST) -n 2 $(or $(AT),tests/web)

test-system: $(VENV)/ready appliance-tools browser-tools ## Run the tests in the appliance (real ZFS)
	$(PYTEST) $(or $(AT),tests/system)

test-browser: $(VENV)/ready appliance-tools browser-tools ## Run the tests of Chromium against the appliance
	$(PYTEST) $(or $(AT),tests/browser)

test-gallery: $(VENV)/ready browser-tools ## Look at a tenth of all pages in Chromium, without a machine
	$(PYTEST) -n 2 $(or $(AT),tests/gallery)

test-soak: $(VENV)/ready appliance-tools browser-tools ## Run the tests that take hours (PART=1/4: a quarter of them; AT=…)
	$(PYTEST) -m soak $(or $(AT),tests)

test-container: $(VENV)/ready ## Build and try the containers
	$(PYTHON) -m deploy.container

bench: $(VENV)/ready appliance-tools ## Measure memory, processor, writes, queries (PART=memory: that alone)
	$(PYTHON) -m tests.benchmarks $(PART)

lock: $(VENV)/ready ## Take newer versions of the Python packages
	$(VENV)/bin/pip install --quiet uv
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header --group dev pyproject.toml -o requirements-dev.lock

clean: ## Delete build/, the virtual environment with it
	rm -rf build
