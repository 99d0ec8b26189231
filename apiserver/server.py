"""The composition root: one API server over one store, from a configuration to a listener, and its orderly end.

listener ─ HandlerChain ─ ResourceEndpoint ─┬ resources: registry ─ objectstore ─ kv
                                             └ everything else: health checks, then a FastAPI app (version, metrics, discovery,
                                               OpenAPI), which is loaded once the server is ready
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import logging
import os
import random
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from apiserver import embedded_store, garbage_collection, health, metrics, store_door, tls
from apiserver.access import CONSTRAINED_IMPERSONATION_MINOR, Access, build_access
from apiserver.admission import configuration as admission_configuration
from apiserver.admission.build import build_admission_chain
from apiserver.admission.configuration import AdmissionConfiguration
from apiserver.admission.looking_again import LookingAgain
from apiserver.admission.metrics import AdmissionMetrics
from apiserver.admission.policies.metrics import PolicyMetrics
from apiserver.admission.policies.source import PolicyServices
from apiserver.aggregation.aggregator import Aggregator
from apiserver.aggregation.registration import LocalRegistration
from apiserver.apiextensions.registrar import DefinitionRegistrar
from apiserver.config import ServerConfig
from apiserver.filters.authorization import CreateAuthorization
from apiserver.filters.flow_control import FlowControl, Limiter
from apiserver.filters.read_only import ReadOnly
from apiserver.flowcontrol.bootstrap import LEVELS, SCHEMAS
from apiserver.flowcontrol.configuration import Configuration, configuration
from apiserver.flowcontrol.dispatcher import Dispatcher
from apiserver.flowcontrol.upkeep import Upkeep
from apiserver.handler_chain import build_handler_chain
from apiserver.handlers.endpoint import ResourceEndpoint
from apiserver.handlers.scope import ResourceScope
from apiserver.handlers.subresources import Subresources
from apiserver.handlers.virtual import VirtualResources
from apiserver.http_listener import HttpListener
from apiserver.lazy_app import LazyApp
from apiserver.machinery.objects import Object
from apiserver.metrics import RequestMetrics, StoreRequestMetrics
from apiserver.objectstore.compactor import Compactor
from apiserver.objectstore.interface import EncryptionError, ObjectStoreError, StoredObject, UnreadableObjectError
from apiserver.objectstore.measured_kv import MeasuredKV
from apiserver.objectstore.object_store import Census, ObjectStore
from apiserver.objectstore.read_only_kv import ReadOnlyKV
from apiserver.policy_status import PolicyStatus
from apiserver.registry import service_addresses, service_allocators, strategies
from apiserver.registry.environment import Environment
from apiserver.registry.field_managers import SchemaFieldManagers
from apiserver.registry.quota_status import QuotaStatus
from apiserver.registry.registry import Registry
from apiserver.registry.served_objects import ServedObjects
from apiserver.registry.service_allocators import MemoryServiceAllocators
from apiserver.registry.webhook_world import RegistryWebhooks, WebhookCalls
from apiserver.request.request_context import RequestInfo
from apiserver.request.request_info import resolve
from apiserver.resources.facts import LAST_MINOR
from apiserver.resources.resource_info import ResourceInfo
from apiserver.resources.table import ResourceTable
from apiserver.schemas.pruning import drop_unknown
from apiserver.schemas.schema_set import SchemaSet
from apiserver.tls_settings import TlsSettings, parse_pair
from storage import api, errors
from storage.tls import EXPIRY_METRIC, CertificateExpiry

if TYPE_CHECKING:
    from apiserver.admission.optional import OptionalServices
    from apiserver.audit.build import Audit
    from apiserver.objectstore.encryption.encryption import Encryption

OnReady = Callable[[], Any]
OnLoaded = Callable[[Census], Any]
OnReading = Callable[[int], Any]

logger = logging.getLogger(__name__)

#: between two attempts to start over a store without a leader
UNAVAILABLE_PAUSE_SECONDS = 0.1
#: to take this server's address back at its end
LEAVE_SECONDS = 2.0
#: between two attempts to write what a store with an alarm did not take at the start
POSTPONED_SECONDS = 5.0
#: A store with an alarm takes no writes until an operator has acted. Its server starts all the same: what is stored can be read, and where
#: space ran out deleted, and the client port, at which alarms are looked at and taken off, opens.
ALARMS = (errors.NoSpaceError, errors.CorruptAlarmError)


class ApiServer:
    """Everything between a store and an ASGI app. ``start`` before the first request; ``run`` as long as it serves."""

    def __init__(self, config: ServerConfig, kv: api.KV) -> None:
        self.config = config
        self.table = ResourceTable(config.kubernetes_version, config.runtime_config)
        self.schemas = SchemaSet.load(config.kubernetes_version)
        self.store_requests = StoreRequestMetrics()
        self._kv = kv
        prefix = f"{config.etcd_prefix}/"
        if config.read_only:
            kv = self._kv = ReadOnlyKV(kv)
        measured = MeasuredKV(kv, self.store_requests.observe, registry_prefix=prefix)
        self.objects = ObjectStore(measured, registry_prefix=prefix)
        self.encryption: Encryption | None = None
        if config.encryption_provider_config is not None:
            from apiserver.objectstore.encryption.encryption import Encryption

            self.encryption = Encryption(
                config.encryption_provider_config, self._resource_of, reload=config.encryption_provider_config_automatic_reload
            )
            self.objects.transformer_of = self.encryption.transformer_of
        source = random.Random(os.urandom(32))  # for names and uids, which need not be secret
        self.allocators = MemoryServiceAllocators(config.service_cluster_ip_range, config.service_node_port_range, source)
        self.env = Environment(
            random=source,
            allocators=self.allocators,
            managers=SchemaFieldManagers(self.schemas, self.table),
            schemas=self.schemas,
            minor=self.table.minor,
        )
        if self.table.minor < LAST_MINOR:
            self.env.drop_unserved = self._drop_unserved
        self.registry = Registry(self.table, self.objects, self.env, event_ttl_seconds=config.event_ttl_seconds)
        self.env.namespaces = self.registry.storage("", "namespaces")
        services = self.registry.storage("", "services")
        services.claims_of, services.claim_folders = service_allocators.claims_of, service_allocators.CLAIM_FOLDERS
        if service_addresses.are_objects(self.registry):
            services.claims_of = service_allocators.claims_with_objects_of
            services.claim_object = functools.partial(service_addresses.claim_object, self.registry)
        self.local_services = LocalRegistration(self.registry, (errors.StoreError,))
        self.definitions = DefinitionRegistrar(self.registry, self.schemas, (errors.StoreError,), self.local_services.definition_changed)
        self.access: Access = build_access(config, self.registry, (errors.StoreError,))
        self.env.authorizer = self.access.authorizer
        self.env.authorize_create = CreateAuthorization(self.access.authorizer)
        served = ServedObjects(self.registry, self.schemas)
        self.policy_metrics = PolicyMetrics()
        self.admission_metrics = AdmissionMetrics()
        self.webhooks = WebhookCalls(self.access.cached, config.service_addresses(), source)
        self.env.call_webhook = self.webhooks.call
        admission = build_admission_chain(
            self.access.cached,
            self.access.authorizer,
            self.access.rbac,
            QuotaStatus(self.registry),
            source,
            RegistryWebhooks(
                self.registry, self.schemas, self.access.cached, served, self.webhooks, source, self.admission_metrics.webhooks
            ),
            enable=config.enable_admission_plugins,
            optional=self._optional_admission(served) if config.enable_admission_plugins else None,
            disable=config.disable_admission_plugins,
            configuration=self._admission_configuration(),
            policies=PolicyServices(objects=self.access.cached, served=served, minor=self.table.minor, metrics=self.policy_metrics),
        )
        admission.metrics = self.admission_metrics
        self.env.admission = LookingAgain(admission, self.objects.source.catch_up)
        #: with --read-only none: nobody else is spoken to
        self.aggregator: Aggregator | None = None
        if not config.read_only:
            self.aggregator = Aggregator(config, self.registry, self.access.cached, (errors.StoreError,), source)
        self.metrics = RequestMetrics()
        self.audit: Audit | None = None
        if config.audit.wanted:
            from apiserver.audit.build import build_audit  # for those alone who want it

            self.audit = build_audit(config.audit)
        self.dispatcher: Dispatcher | None = None
        self.flow_objects = Upkeep(self.registry, (errors.StoreError,), self._flow_objects_changed)
        self.policy_status = PolicyStatus(self.registry, self.schemas, (errors.StoreError,))
        self._certificates: CertificateExpiry | None = None
        self._postponed: list[Callable[[], Awaitable[object]]] = []
        self.ready = False
        self.app = self._build_app()

    def _admission_configuration(self) -> AdmissionConfiguration:
        file = self.config.admission_control_config_file
        return AdmissionConfiguration() if file is None else admission_configuration.load(file)

    def _optional_admission(self, served: ServedObjects) -> OptionalServices:
        from apiserver.admission.optional import OptionalServices
        from apiserver.registry.provisioning import NamespaceMaker

        return OptionalServices(create_namespace=NamespaceMaker(self.registry).create, by_kind=served.by_kind)

    def _build_app(self) -> Any:
        config = self.config
        limit = config.max_request_body_bytes
        virtual = VirtualResources(
            self.schemas, self.access.tokens, self.access.authorizer, self.access.rbac, self.access.modes, self._pods, limit
        )
        self.endpoint = ResourceEndpoint(
            self.registry,
            self.schemas,
            Subresources(self.registry, self.access.issue_token, limit),
            virtual,
            self._build_health(),
            max_body_bytes=limit,
            min_request_timeout_seconds=config.min_request_timeout_seconds,
        )
        passed_on = self.aggregator.in_front_of(self.endpoint) if self.aggregator is not None else None
        return build_handler_chain(
            ReadOnly(self.endpoint) if passed_on is None else passed_on,
            resolve=resolve,
            authenticator=self.access.authenticator,
            authorizer=self.access.authorizer,
            catch_up=self.objects.source.catch_up,
            flow_control=self._flow_control(),
            identity_metrics=self.access.metrics,
            constrained_impersonation=self.table.minor >= CONSTRAINED_IMPERSONATION_MINOR,
            is_passed_on=(lambda info: False) if passed_on is None else passed_on.takes,
            request_timeout_seconds=config.request_timeout_seconds,
            observer=self.metrics,
            auditor=self.audit.auditor if self.audit is not None else None,
        )

    def _resource_of(self, prefix: str) -> tuple[str, str]:
        """Group and resource of a storage prefix: of custom resources both stand in it."""
        found = next((info for info in self.table if info.storage_prefix == prefix), None)
        if found is not None:
            stored = self.table.storage_info(found) or found
            # events are those of the core group, as kube-apiserver has them
            return ("", "events") if prefix == "events" else (stored.group, stored.resource)
        group, _, resource = prefix.partition("/")
        return group, resource

    def _flow_control(self) -> Limiter:
        config = self.config
        most = (config.max_requests_inflight, config.max_mutating_requests_inflight)
        if not config.enable_priority_and_fairness:
            return FlowControl(*most)
        self.dispatcher = Dispatcher(
            self._read_flow_configuration,
            self._count_objects,
            seats=sum(most),
            request_timeout_seconds=config.request_timeout_seconds,
            now=time.monotonic,
        )
        return self.dispatcher

    def _read_flow_configuration(self) -> Configuration:
        levels, schemas = (self.flow_objects.current(resource).values() for resource in (LEVELS, SCHEMAS))
        return configuration(levels, schemas)

    def _count_objects(self, info: RequestInfo) -> int | None:
        found = self.table.lookup(info.group, info.version, info.resource)
        storage = self.objects.storages().get(found.storage_prefix) if found is not None else None
        return len(storage.cache) if storage is not None else None

    def _flow_objects_changed(self) -> None:
        if self.dispatcher is not None:
            self.dispatcher.changed()

    def _expose_audit(self, out: metrics.Exposition) -> None:
        if self.audit is not None:
            self.audit.auditor.expose(out)

    def _expose_store(self, out: metrics.Exposition) -> None:
        """Of the embedded store; an external one tells its own."""
        self.store_requests.expose(out)
        collect = getattr(self._kv, "metric_families", None)
        if collect is not None:
            metrics.expose_families(collect(), out)

    def _expose_certificates(self, out: metrics.Exposition) -> None:
        if self._certificates is None:
            self._certificates = tls.certificate_expiry(self.config)
        metrics.expose_certificates(EXPIRY_METRIC, self._certificates.samples(), out)

    def _expose_aggregation(self, out: metrics.Exposition) -> None:
        if self.aggregator is not None:
            self.aggregator.expose(out)

    def _drop_unserved(self, info: ResourceInfo, obj: Object) -> None:
        if info.builtin:
            drop_unknown(self.schemas.type_of(info.group, info.version, info.kind), obj)

    def _pods(self) -> ResourceScope:
        scope = self.endpoint.scope("", "v1", "pods")
        assert scope is not None, "pods are always served"
        return scope

    def _build_health(self) -> health.HealthEndpoints:
        """What is no resource request: probes, and behind them the documents."""
        store = health.HealthCheck(name="etcd", check=self._store_problem)
        # Without a leader there is nothing that a restart of this process would mend.
        alive = health.HealthCheck(name="etcd", check=self._feed_problem)
        started = health.HealthCheck(name="poststarthook/bootstrap", check=lambda: "" if self.ready else "not started yet, or about to end")
        self.documents = LazyApp(self._build_documents)
        ready = [store, started]
        encryption = self.encryption
        if encryption is not None and encryption.plugins:
            ready.append(health.HealthCheck(name="kms-providers", check=encryption.problem))
        self.health = health.HealthEndpoints(self.documents, healthz=ready, livez=(alive,), readyz=ready)
        return self.health

    def _store_problem(self) -> str:
        """A store tells what it suffers from: one of several members that it knows no leader, an external one why it is not reached."""
        return str(getattr(self._kv, "problem", "")) or self._feed_problem()

    def _feed_problem(self) -> str:
        return "" if self.objects.alive else "the changes of the store do not arrive"

    def _build_documents(self) -> Any:
        """Version, metrics, discovery, OpenAPI: documents about what is served, on FastAPI."""
        from fastapi import FastAPI

        from apiserver.apiextensions.rules import durations as cel_durations
        from apiserver.discovery import index as path_index
        from apiserver.discovery import issuer_routes, openapi_routes
        from apiserver.discovery import routes as discovery_routes

        config = self.config
        app = FastAPI(title="Sampan", openapi_url=None, docs_url=None, redoc_url=None)
        extensions = None if self.aggregator is None else self.aggregator.extensions
        app.include_router(discovery_routes.router(self.table, extensions))
        app.include_router(openapi_routes.router(self.table, self.schemas, extensions))
        app.include_router(issuer_routes.router(config.service_account_issuer[0], self.access.public_keys, config.service_account_jwks_uri))
        if self.dispatcher is not None:
            from apiserver.discovery import flow_control_routes

            app.include_router(flow_control_routes.router(self.dispatcher))
        exposers = (
            *(self.metrics.expose, self._expose_audit, self._expose_store, self._expose_certificates, self._expose_aggregation),
            self.access.metrics.expose,
            *(self.policy_metrics.expose, cel_durations.expose, self.admission_metrics.expose),
            self.env.conversion_metrics.expose,
        )
        app.include_router(metrics.router(exposers))
        path_index.install(app, self.table, self.health.paths())
        return app

    async def start(self, address: str, port: int) -> None:
        """Load the caches and make sure of the system's objects. ``address`` and ``port``: where this server is reached."""
        if self.encryption is not None:
            await self.encryption.connect()
        await _once_available(self.objects.start)
        if self.config.load_everything:
            for info in self._custom_resources():
                await self.objects.add_running(info.storage_prefix, info.namespaced)
        # from here on changes arrive: what is written below is waited for like every other write
        self._feeding = asyncio.create_task(self.objects.run())
        begins = not any(len(storage.cache) for storage in self.objects.storages().values())
        try:
            if not self.config.read_only:
                await self._make_system(address, port)
                if begins and self._is_only_server():
                    await self._forget_the_beginning()
        except BaseException:
            self._feeding.cancel()
            raise
        self.ready = True

    def _custom_resources(self) -> list[ResourceInfo]:
        return [info for info in self.table if not info.builtin]

    def census(self) -> Census:
        """What was found in the store. Custom objects that are read when they are first asked for are not counted."""
        found = self.objects.census()
        waiting = {info.storage_prefix for info in self._custom_resources()}
        return dataclasses.replace(found, elsewhere={place: n for place, n in found.elsewhere.items() if place not in waiting})

    async def _make_system(self, address: str, port: int) -> None:
        from apiserver.authentication_trust import AuthenticationTrust
        from apiserver.bootstrap import create_system_objects
        from apiserver.kubernetes_endpoints import ApiAddress, KubernetesEndpoints
        from apiserver.service_repair import ServiceRepair

        services = self.registry.storage("", "services")
        self.allocators.restore(obj.decode() for obj in services.cache.values())
        services.cache.observe(self._service_changed)
        cidr = self.config.service_cluster_ip_range
        configuration = self.config.model_dump(mode="json")
        self._trust = AuthenticationTrust(self.registry, self.config, time.time, (errors.StoreError,))
        self._endpoints = KubernetesEndpoints(self.registry, ApiAddress(address, port), self._is_only_server, (errors.StoreError,))
        self._repair = ServiceRepair(self.registry, self.allocators, (errors.StoreError,))
        await self._now_or_later(lambda: create_system_objects(self.registry, cidr, port))
        await self._now_or_later(self.flow_objects.keep)
        await self._now_or_later(self._trust.keep)
        if self.access.legacy_tokens is not None:
            await self._now_or_later(self.access.legacy_tokens.keep)
        await self._now_or_later(self._keep_endpoints)
        await self._now_or_later(services.restore_claims)
        await self._now_or_later(lambda: self.objects.write_configuration(self.config.store.name, configuration))

    async def _forget_the_beginning(self) -> None:
        """Of a new store: the revisions in which the system's objects were made one by one. Nobody has seen them, so that whoever asks
        for one (a client that knows another cluster's revisions, most likely) is told 410 from the first moment on, not only once the
        store is compacted for the first time."""
        with contextlib.suppress(errors.StoreError):
            await self._kv.compact(self.objects.source.revision)

    async def _keep_endpoints(self) -> None:
        try:
            await self._endpoints.keep()
        except UnreadableObjectError as error:
            logger.warning("the addresses of the kubernetes service stay as they are: %s", error)

    async def _now_or_later(self, step: Callable[[], Awaitable[object]]) -> None:
        """Do a step of the start; where an alarm of the store keeps it from being written, ``run`` does it."""
        try:
            await _once_available(step)
        except (*ALARMS, EncryptionError) as error:
            if not self._postponed:
                logger.warning("started, but the store takes no writes: %s", _told(error))
            self._postponed.append(step)

    async def _do_postponed(self) -> None:
        while self._postponed:
            await asyncio.sleep(POSTPONED_SECONDS)
            try:
                while self._postponed:
                    await self._postponed[0]()
                    del self._postponed[0]
            except (errors.StoreError, ObjectStoreError) as error:
                logger.info("what the store did not take at the start waits on: %s", error)

    def _service_changed(self, new: StoredObject | None, old: StoredObject | None) -> None:
        """Addresses and ports of services that are gone, or need them no more, are free again; what other servers gave is not."""
        if old is not None and new is None:
            self.allocators.release_service(old.decode())
        elif old is not None and new is not None:
            self.allocators.release_unused(old.decode(), new.decode())
        if new is not None:
            self.allocators.hold(new.decode())

    async def run(self) -> None:
        """Until cancelled, or until the store stops."""
        interval = self.config.etcd_compaction_interval_seconds
        beside: list[asyncio.Task[None]] = [asyncio.create_task(self.objects.source.check_unread())]
        if self.audit is not None:
            beside.append(asyncio.create_task(self.audit.run()))
        if self.encryption is not None:
            beside.append(asyncio.create_task(self.encryption.run(self.objects)))
        if not self.config.read_only:
            beside += [asyncio.create_task(work()) for work in self._work_beside()]
            if interval:
                beside.append(asyncio.create_task(Compactor(self._kv, interval).run()))
        try:
            await self._feeding
        finally:
            for task in (self._feeding, *beside):
                task.cancel()
            await asyncio.wait((self._feeding, *beside))
            await self.access.close()
            await self.webhooks.close()

    def _work_beside(self) -> tuple[Callable[[], Coroutine[Any, Any, None]], ...]:
        assert self.aggregator is not None, "nothing is done beside reading where nothing is written"
        return (
            self._endpoints.run,
            self._trust.run,
            self._repair.run,
            self._do_postponed,
            self.definitions.run,
            self.flow_objects.run,
            self.policy_status.run,
            self.local_services.run,
            self.aggregator.run,
            *((self.access.legacy_tokens.run,) if self.access.legacy_tokens is not None else ()),
        )

    def _is_only_server(self) -> bool:
        """Of a store that is in this process, with no further member."""
        return self._kv.events_are_immediate and self._kv.local_revision() is not None

    async def leave(self) -> None:
        """At an orderly end, while the store can still be reached: clients inside the cluster are sent elsewhere. A store that does not
        answer, as one without a quorum, does not hold up the end: other servers find this one's address unheld."""
        if self.config.read_only:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._endpoints.leave(), LEAVE_SECONDS)

    def stop(self) -> None:
        """Not ready from now on; watches end, so that their clients go elsewhere."""
        self.ready = False
        self.objects.end_watches()


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, EncryptionError) else f"{error}; see etcdctl alarm list"


async def _unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> bool:
    """Whether the work was done; False where ``stop`` was set before. Raises what it raises."""
    tasks = (asyncio.create_task(work), asyncio.create_task(stop.wait()))
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    done = tasks[0].done()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    if done:
        await tasks[0]
    return done


async def _once_available(step: Callable[[], Awaitable[object]]) -> None:
    """Do a step of the start, which can be done again, as often as the store has no leader to do it with: others may be starting too."""
    warned = False
    while True:
        try:
            await step()
            return
        except errors.StoppedError:
            raise
        except (errors.UnavailableError, errors.NotSupportedForLearnerError) as error:
            if not warned:
                warned = True
                if isinstance(error, errors.NotSupportedForLearnerError):
                    logger.warning("this member is a learner: its API server starts once it is promoted (etcdctl member promote)")
                else:
                    logger.warning("the start waits for the store: %s", error)
            await asyncio.sleep(UNAVAILABLE_PAUSE_SECONDS)


async def _load_ahead(server: ApiServer) -> None:
    """What a first request would wait for. Where that fails (no file can be opened while clients hold all that a process may have), the
    request that needs it tries again: no reason for the others to end."""
    try:
        await server.documents.load()
        await asyncio.to_thread(strategies.load_all)
    except OSError as error:
        logger.warning("not all could be loaded ahead of its use: %s", error)


async def serve_over(
    config: ServerConfig,
    listener: socket.socket,
    kv: api.KV,
    *,
    stop: asyncio.Event,
    on_ready: OnReady | None = None,
    on_loaded: OnLoaded | None = None,
    on_reading: OnReading | None = None,
    door: Callable[[], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Serve on a bound socket until ``stop`` is set or the store stops. ``door`` runs from when all is ready to the end. Raises OSError,
    ssl.SSLError for unusable certificates. ``on_loaded`` is told what was found in the store, ``on_reading`` how much so far."""
    server = ApiServer(config, kv)
    server.objects.source.on_progress = on_reading
    proxy_ca = config.request_header.client_ca_file if config.request_header is not None else None
    settings = TlsSettings(
        min_version=config.tls_min_version, cipher_suites=config.tls_cipher_suites, sni=tuple(map(parse_pair, config.tls_sni_cert_key))
    )
    context = tls.server_context(config.tls_cert_file, config.tls_private_key_file, config.client_ca_file or proxy_ca, settings)
    http = HttpListener(server.app, listener, context)
    host, port = listener.getsockname()[:2]
    address = config.advertise_address or (host if host not in ("0.0.0.0", "::") else config.bind_address)
    if not await _unless_stopped(server.start(address, port), stop):
        return
    if on_loaded is not None:
        on_loaded(server.census())
    running = asyncio.create_task(server.run())
    stopped = asyncio.create_task(stop.wait())
    tasks = [running, stopped]
    await http.start()
    try:
        if on_ready is not None:
            on_ready()
        await _load_ahead(server)
        await asyncio.to_thread(tls.warn_of_expired_certificates, config, time.time())
        garbage_collection.settle()
        if door is not None:
            tasks.append(asyncio.create_task(door()))
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.stop()
        await server.leave()
        await http.stop()
        if server.audit is not None:
            await asyncio.to_thread(server.audit.auditor.close)
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def serve(
    config: ServerConfig,
    listener: socket.socket,
    *,
    stop: asyncio.Event,
    client_listeners: Sequence[store_door.ClientListener] = (),
    on_ready: OnReady | None = None,
    on_loaded: OnLoaded | None = None,
    on_reading: OnReading | None = None,
    on_progress: embedded_store.OnProgress | None = None,
) -> None:
    """``serve_over`` the embedded store in ``config.store.data_dir``, or over an external etcd. Raises storage.errors.StoreError where it
    cannot be used. ``on_progress`` is told now and then what the start waits for."""
    over = functools.partial(serve_over, config, listener, stop=stop, on_ready=on_ready, on_loaded=on_loaded, on_reading=on_reading)
    if config.etcd is not None:
        from apiserver import external_etcd

        kv = await external_etcd.connected(config.etcd, stop)
        if kv is not None:
            try:
                await over(kv)
            finally:
                await kv.close()
        return
    async with embedded_store.running_member(config.store, stop, on_progress) as member:
        if member is not None:
            door = functools.partial(store_door.run, config.store, member, client_listeners) if client_listeners else None
            await over(member, door=door)
