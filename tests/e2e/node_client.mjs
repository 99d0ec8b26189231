// What programs for Node do with @kubernetes/client-node: list, watch, inform themselves, patch. Ends with "done" and status 0.
import assert from 'node:assert/strict';
import * as k8s from '@kubernetes/client-node';

const namespace = process.argv[2];
const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const custom = config.makeApiClient(k8s.CustomObjectsApi);
const path = `/api/v1/namespaces/${namespace}/configmaps`;
const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'of=node' });
const map = (name, data) => ({ metadata: { name, labels: { of: 'node' } }, data });
const moment = (check, what) =>
  new Promise((resolve, reject) => {
    const end = Date.now() + 30000;
    const look = () => (check() ? resolve() : Date.now() > end ? reject(new Error(`never: ${what}`)) : setTimeout(look, 20));
    look();
  });

// an informer: list, then watch
const seen = [];
const informer = k8s.makeInformer(config, path, list, 'of=node');
for (const verb of ['add', 'update', 'delete']) {
  informer.on(verb, (object) => seen.push(`${verb} ${object.metadata.name}`));
}
informer.on('error', (error) => seen.push(`error ${error}`));
await core.createNamespacedConfigMap({ namespace, body: map('before', { a: '1' }) });
await informer.start();
await moment(() => seen.includes('add before'), 'what was there');

// writes and patches of each kind
await core.createNamespacedConfigMap({ namespace, body: map('one', { a: '1' }) });
const patched = async (type, body, more = {}) =>
  core.patchNamespacedConfigMap({ name: 'one', namespace, body, ...more }, k8s.setHeaderOptions('Content-Type', type));
assert.deepEqual((await patched(k8s.PatchStrategy.MergePatch, { data: { b: '2' } })).data, { a: '1', b: '2' });
assert.deepEqual((await patched(k8s.PatchStrategy.JsonPatch, [{ op: 'remove', path: '/data/b' }])).data, { a: '1' });
assert.deepEqual((await patched(k8s.PatchStrategy.StrategicMergePatch, { data: { c: '3' } })).data, { a: '1', c: '3' });
const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one' }, data: { d: '4' } };
assert.equal((await patched(k8s.PatchStrategy.ServerSideApply, applied, { fieldManager: 'node' })).data.d, '4');
await moment(() => seen.includes('add one') && seen.includes('update one'), 'changes');
assert.deepEqual((await list()).items.map((item) => item.metadata.name).sort(), ['before', 'one']);
const pages = await core.listNamespacedConfigMap({ namespace, labelSelector: 'of=node', limit: 1 });
assert.equal(pages.items.length, 1);
const rest = await core.listNamespacedConfigMap({ namespace, labelSelector: 'of=node', limit: 1, _continue: pages.metadata._continue });
assert.equal(rest.items.length, 1);

// a watch of one's own, from a version on
const events = [];
const from = (await list()).metadata.resourceVersion;
const watching = await new k8s.Watch(config).watch(
  path,
  { resourceVersion: from, labelSelector: 'of=node', allowWatchBookmarks: true },
  (type, object) => events.push(`${type} ${object.metadata.name}`),
  () => {},
);
await core.deleteNamespacedConfigMap({ name: 'one', namespace });
await moment(() => events.includes('DELETED one') && seen.includes('delete one'), 'the end');
watching.abort();

// refusals carry the Status
await assert.rejects(core.readNamespacedConfigMap({ name: 'absent', namespace }), (error) => {
  assert.equal(error.code, 404);
  assert.equal(JSON.parse(error.body).message, 'configmaps "absent" not found');
  return true;
});
await assert.rejects(custom.listNamespacedCustomObject({ group: 'absent.test', version: 'v1', namespace, plural: 'things' }));
assert.ok(!seen.some((line) => line.startsWith('error')), seen.join());
await informer.stop();
console.log('done');
process.exit(0);
