const ruleFiles = [
  'rules/parse-text.ts',
  'rules/yaml/read-nodes.ts',
  'reload/document-tasks.ts',
  'reload/plugin-names.ts',
]
const documents = ['sources/index.ts', 'sources/client/follow.ts', 'sources/client/text.ts', 'reload/snapshot.ts']
const sharedStores = ['create/open-store.ts', 'stores/counting/client.ts', 'engine/create-shared-stores.ts']

/** What files of a package there are besides its entries, and the roots of each; the last of them are divided by the bundler. */
export const layersOf = {
  'diana-limiter': [
    { name: 'lua', roots: ['algorithms/lua/generated.ts'] },
    // filters check the options of algorithms, and a bundle of RateLimiter needs one of them
    { name: 'algorithms', roots: ['algorithms/index.ts'] },
    // what filters and the engine share, so that neither imports the other
    { name: 'common', roots: ['filters/express.ts', 'create/start-limiter.ts'] },
    { name: 'answers', roots: ['filters/express.ts', 'index.ts'] },
    // by itself, since a bundle without createLimiter needs nothing of what it imports later
    { name: 'create-limiter', roots: ['create/create-limiter.ts'], isAlone: true },
    // RateLimiter, which many programs use alone; what the engine shares with paces in Redis, which load the connection
    { name: 'tables', roots: ['pacing/connect-pace.ts', 'create/start-limiter.ts'] },
    { name: 'tables', roots: ['common/import-ioredis.ts'] },
    { name: 'pace', roots: ['pacing/rate-limiter.ts'] },
    { name: 'shared-pace', roots: ['pacing/connect-pace.ts'] },
    {
      name: 'filters',
      roots: ['filters/express.ts', 'filters/fetch.ts', 'filters/koa.ts', 'filters/fastify.ts', 'filters/http.ts'],
      least: 2,
    },
    // small ones, which several filters import: a file of their own each would take twice the space on disk
    {
      name: 'filters',
      roots: ['filters/express.ts', ...['fastify', 'fetch', 'http'].map(name => `filters/frameworks/${name}.ts`)],
      isAlone: true,
    },
    { name: 'schemas', roots: ['common/schema-kit.ts'] },
    // what the first limiter loads
    { name: 'base', roots: ['index.ts', 'create/start-limiter.ts'] },
    // what it shares with parts that it loads later, so that those do not import it
    { name: 'rules', roots: ['create/start-limiter.ts', ruleFiles] },
    { name: 'stores', roots: ['create/start-limiter.ts', sharedStores] },
    { name: 'engine', roots: ['create/start-limiter.ts'] },
    // what its options load
    { name: 'sources', roots: [documents] },
    { name: 'rule-files', roots: [ruleFiles] },
    { name: 'shared-stores', roots: [sharedStores] },
  ],
  'diana-gateway': [
    // what `diana start`, `diana serve` and a program with a gateway inside load
    { name: 'settings', roots: ['settings/gateway-settings.ts', 'serve/serve-settings.ts'], least: 1 },
    { name: 'servers', roots: ['cli/start.ts', 'cli/serve.ts'] },
    { name: 'gateway', roots: ['gateway.ts', 'cli/start.ts'], least: 1 },
    { name: 'decision-server', roots: ['cli/serve.ts', 'process/serve-program.ts'], least: 1 },
    { name: 'admin', roots: ['admin/server/start-admin.ts'] },
  ],
}

/**
 * Which modules stand in one file. A layer has the modules that all its roots import, directly or not (or `least` of the roots; of a
 * list of roots, any), and that no earlier layer has. So no file imports a later one, none is loaded for a part that is not used, and a
 * bundler can leave out the parts that are loaded later.
 */
export class Layers {
  #layers
  #of = new Map()

  constructor(layers = []) {
    this.#layers = layers
  }

  /** Divides the modules when the imports of all are known. */
  get plugin() {
    const layers = this
    return {
      name: 'layers',
      buildEnd() {
        const ids = [...this.getModuleIds()]
        layers.#divide(new Map(ids.map(id => [id, this.getModuleInfo(id).importedIds])))
      },
    }
  }

  get groups() {
    const test = name => id => this.#of.get(id) === name
    return this.#layers.map(({ name }, index) => ({ name, priority: this.#layers.length - index, test: test(name) }))
  }

  #divide(graph) {
    const idOf = root => {
      const id = [...graph.keys()].find(id => id.endsWith(`/src/${root}`))
      if (id === undefined) throw new Error(`the layers name ${root}, which no entry imports`)
      return id
    }
    for (const { name, roots, isAlone } of this.#layers)
      if (isAlone) for (const root of roots) this.#of.set(idOf(root), name)
    for (const { name, roots, least = roots.length, isAlone } of this.#layers) {
      if (isAlone) continue
      const times = new Map()
      for (const root of roots) {
        const found = new Set()
        for (const one of [root].flat()) closureOf(idOf(one), graph, found)
        for (const id of found) times.set(id, (times.get(id) ?? 0) + 1)
      }
      for (const [id, count] of times) if (count >= least && !this.#of.has(id)) this.#of.set(id, name)
    }
  }
}

function closureOf(from, graph, found = new Set()) {
  if (found.has(from) || !graph.has(from)) return found
  found.add(from)
  for (const id of graph.get(from)) closureOf(id, graph, found)
  return found
}
