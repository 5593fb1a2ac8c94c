# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a shared library asks of others: a small reader of 64-bit ELF files.

Only the dynamic section, the dynamic symbols and their version needs are
read; the file is mapped, so that large libraries cost little.
"""

import mmap
import struct

DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_SONAME, DT_HASH = 1, 5, 6, 14, 4
DT_GNU_HASH, DT_VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFE, 0x6FFFFFFF
SHT_DYNSYM = 11
STT_OBJECT = 1
STB_WEAK = 2


class Library:
    """needed: file names; soname; undefined: {name: (version, file, is_data)}
    where version and file are None for symbols without a version."""

    def __init__(self, path):
        self.path = path
        self.soname = None
        self.needed = []
        self.undefined = {}
        with open(path, "rb") as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                self._read(data)

    def _read(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{self.path}: not a 64-bit ELF file")
        (phoff, shoff) = struct.unpack_from("<QQ", data, 32)
        (phentsize, phnum, shentsize, shnum) = struct.unpack_from(
            "<HHHH", data, 54
        )
        loads, dynamic = [], None
        for i in range(phnum):
            kind, _, offset, vaddr, _, filesz = struct.unpack_from(
                "<IIQQQQ", data, phoff + i * phentsize
            )
            if kind == 1:
                loads.append((vaddr, offset, filesz))
            elif kind == 2:
                dynamic = (offset, filesz)
        if dynamic is None:
            return

        def at(address):
            for vaddr, offset, size in loads:
                if vaddr <= address < vaddr + size:
                    return address - vaddr + offset
            raise ValueError(f"{self.path}: address {address:#x} is unmapped")

        tags, needed = {}, []
        for offset in range(dynamic[0], dynamic[0] + dynamic[1], 16):
            tag, value = struct.unpack_from("<qQ", data, offset)
            if tag == 0:
                break
            if tag == DT_NEEDED:
                needed.append(value)
            else:
                tags[tag] = value
        strtab = at(tags[DT_STRTAB])

        def text(offset):
            start = strtab + offset
            return data[start : data.find(b"\0", start)].decode()

        self.needed = [text(offset) for offset in needed]
        if DT_SONAME in tags:
            self.soname = text(tags[DT_SONAME])
        versions = {}
        if DT_VERNEED in tags:
            self._read_versions(
                data, at(tags[DT_VERNEED]), tags[DT_VERNEEDNUM], text, versions
            )
        count = self._symbol_count(data, shoff, shentsize, shnum)
        symtab = at(tags[DT_SYMTAB])
        versym = at(tags[DT_VERSYM]) if DT_VERSYM in tags else None
        for i in range(1, count):
            name, info, _, shndx = struct.unpack_from(
                "<IBBH", data, symtab + i * 24
            )
            if shndx or info >> 4 == STB_WEAK:
                continue
            index = 0
            if versym is not None:
                (index,) = struct.unpack_from("<H", data, versym + i * 2)
            version, file = versions.get(index & 0x7FFF, (None, None))
            self.undefined[text(name)] = (version, file, info & 15 == STT_OBJECT)

    @staticmethod
    def _read_versions(data, offset, count, text, versions):
        for _ in range(count):
            _, entries, file, first, following = struct.unpack_from(
                "<HHIII", data, offset
            )
            entry = offset + first
            for _ in range(entries):
                _, _, index, name, after = struct.unpack_from(
                    "<IHHII", data, entry
                )
                versions[index & 0x7FFF] = (text(name), text(file))
                entry += after
            offset += following

    def _symbol_count(self, data, shoff, shentsize, shnum):
        for i in range(shnum):
            kind, _, _, _, size = struct.unpack_from(
                "<IQQQQ", data, shoff + i * shentsize + 4
            )
            if kind == SHT_DYNSYM:
                return size // 24
        raise ValueError(f"{self.path}: no section headers")
