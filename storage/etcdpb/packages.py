"""Message classes by name, and the descriptors behind them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    from storage.etcdpb import table


class Package:
    """The messages and enums of one protobuf package, as attributes. Each is looked up once and then kept."""

    def __init__(self, name: str) -> None:
        self._package = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _find(f"{self._package}.{name}")
        if found is None:
            raise AttributeError(f"protobuf package {self._package} has no {name}")
        setattr(self, name, found)
        return found


def _find(full_name: str) -> Any:
    from google.protobuf import message_factory
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    try:
        return message_factory.GetMessageClass(pool().FindMessageTypeByName(full_name))
    except KeyError:
        pass
    try:
        return EnumTypeWrapper(pool().FindEnumTypeByName(full_name))
    except KeyError:
        return None


@functools.cache
def file_descriptors() -> tuple[FileDescriptorProto, ...]:
    """The files of the table, each after those it imports."""
    from storage.etcdpb.table import FILES

    return tuple(_file(file) for file in FILES)


@functools.cache
def pool() -> DescriptorPool:
    """A pool of our own: another package of the process may bring the same names into protobuf's default one."""
    from google.protobuf.descriptor_pool import DescriptorPool

    made = DescriptorPool()
    for file in file_descriptors():
        made.Add(file)
    return made


def _file(file: table.File) -> FileDescriptorProto:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    made = FileDescriptorProto(name=file.name, package=file.package, syntax="proto3", dependency=file.imports)
    for enum in file.enums:
        _add_enum(made.enum_type.add(), enum)
    for message in file.messages:
        scope = {one.name: f".{file.package}.{message.name}.{one.name}" for one in message.enums}
        _add_message(made.message_type.add(), message, file.package, scope)
    for service in file.services:
        declared = made.service.add(name=service.name)
        for method in service.methods:
            declared.method.add(
                name=method.name,
                input_type=f".{file.package}.{method.request}",
                output_type=f".{file.package}.{method.response}",
                client_streaming=method.client_streaming,
                server_streaming=method.server_streaming,
            )
    return made


def _add_message(made: Any, message: table.Message, package: str, scope: dict[str, str]) -> None:
    from storage.etcdpb.table import SCALARS

    made.name = message.name
    for enum in message.enums:
        _add_enum(made.enum_type.add(), enum)
    oneofs: list[str] = []
    for field in message.fields:
        declared = made.field.add(name=field.name, number=field.number)
        declared.label = declared.LABEL_REPEATED if field.repeated else declared.LABEL_OPTIONAL
        if field.type in SCALARS:
            declared.type = getattr(declared, f"TYPE_{field.type.upper()}")
        else:
            # Left without a type: the pool finds out whether the name is a message or an enum.
            declared.type_name = scope.get(field.type) or ("." + field.type if "." in field.type else f".{package}.{field.type}")
        if field.oneof:
            if field.oneof not in oneofs:
                oneofs.append(field.oneof)
                made.oneof_decl.add(name=field.oneof)
            declared.oneof_index = oneofs.index(field.oneof)


def _add_enum(made: Any, enum: table.Enum) -> None:
    made.name = enum.name
    for number, name in enumerate(enum.values):
        made.value.add(name=name, number=number)
