"""``grpc.reflection`` (v1 and v1alpha): clients such as ``grpcurl`` learn the services and messages from the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from storage.etcdpb import packages, reflection_v1, reflection_v1alpha, services
from storage.etcdserver.grpc_server import Call, Handler
from storage.etcdserver.rpctypes import Code


class ReflectionService:
    def handlers(self) -> Mapping[str, Handler]:
        return {
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": self.v1,
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": self.v1alpha,
        }

    async def v1(self, call: Call) -> None:
        await _serve(call, reflection_v1)

    async def v1alpha(self, call: Call) -> None:
        await _serve(call, reflection_v1alpha)


async def _serve(call: Call, pb: Any) -> None:
    while (request := await call.receive()) is not None:
        await call.send(_answer(request, pb))


def _answer(request: Any, pb: Any) -> Any:
    response = pb.ServerReflectionResponse(valid_host=request.host, original_request=request)
    asked = request.WhichOneof("message_request")
    try:
        if asked == "list_services":
            for name in services.service_names():
                response.list_services_response.service.add(name=name)
        elif asked == "file_by_filename":
            _add_file(response, packages.pool().FindFileByName(request.file_by_filename))
        elif asked == "file_containing_symbol":
            _add_file(response, packages.pool().FindFileContainingSymbol(request.file_containing_symbol))
        elif asked == "all_extension_numbers_of_type":
            packages.pool().FindMessageTypeByName(request.all_extension_numbers_of_type)
            response.all_extension_numbers_response.base_type_name = request.all_extension_numbers_of_type
        else:
            raise KeyError(f"there is no {asked}")
    except KeyError as error:
        response.error_response.error_code = Code.NOT_FOUND
        response.error_response.error_message = str(error.args[0])
    return response


def _add_file(response: Any, file: Any) -> None:
    """The file and all that it imports, each after those."""
    for imported in file.dependencies:
        _add_file(response, imported)
    data = file.serialized_pb
    if data not in response.file_descriptor_response.file_descriptor_proto:
        response.file_descriptor_response.file_descriptor_proto.append(data)
