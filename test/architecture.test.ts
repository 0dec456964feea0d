import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Layers {
  /** Files and folders that import only each other; everything may import them. */
  readonly bottom: readonly string[]
  /** What else a folder, or a file of the top level, may import; one without a list may import all. */
  readonly mayImport: Readonly<Record<string, readonly string[]>>
}

const packages: Readonly<Record<string, Layers>> = {
  limiter: {
    bottom: ['call', 'errors', 'common', 'http'],
    mayImport: {
      algorithms: [],
      dimensions: [],
      costs: [],
      rules: ['algorithms', 'costs', 'dimensions'],
      stores: ['algorithms'],
      sources: ['rules'],
      verdict: ['rules'],
      stats: ['algorithms', 'costs', 'dimensions', 'overload', 'rules', 'stores', 'verdict', 'decision'],
      decision: ['algorithms', 'costs', 'dimensions', 'rules', 'stores', 'stats', 'verdict', 'distributed'],
      distributed: ['algorithms', 'rules', 'stores', 'decision', 'engine'],
      queue: ['algorithms', 'rules', 'stores', 'stats', 'verdict', 'decision'],
      reload: ['algorithms', 'dimensions', 'rules', 'sources', 'admin'],
      admin: [
        'dimensions',
        'rules',
        'sources',
        'stores',
        'stats',
        'decision',
        'reload',
        'engine',
        'limiter',
        'limits',
        'verdict',
      ],
      limits: ['algorithms', 'dimensions', 'rules', 'stores', 'sources', 'decision', 'engine'],
      pacing: ['algorithms', 'stores'],
      'limiter-status': ['algorithms', 'overload', 'rules', 'stores', 'reload'],
      overload: ['rules', 'dimensions'],
      metrics: ['engine', 'limiter', 'limiter-status', 'stats', 'verdict'],
      'filters/answers': ['rules', 'verdict'],
      decorators: ['limiter', 'engine', 'algorithms', 'dimensions', 'rules', 'reload', 'verdict', 'filters/answers'],
      filters: [
        ...['algorithms', 'create', 'limiter', 'engine', 'costs', 'decision', 'verdict', 'rules', 'decorators'],
        'filters/answers',
      ],
      testing: [
        'admin',
        'algorithms',
        'dimensions',
        'rules',
        'stores',
        'sources',
        'stats',
        'decision',
        'limiter',
        'create',
      ],
    },
  },
  gateway: {
    bottom: ['version'],
    mayImport: {
      settings: ['filters', 'proxy', 'routes', 'upstreams'],
      grpc: ['problem'],
      compression: ['calls', 'proxy', 'settings'],
      calls: ['cors', 'grpc', 'problem', 'proxy', 'settings', 'telemetry'],
      connections: ['grpc', 'http2', 'problem', 'proxy', 'settings', 'telemetry'],
      filters: ['connections', 'problem', 'proxy', 'routes', 'settings'],
      http2: ['connections', 'grpc', 'problem', 'proxy', 'settings'],
      proxy: [
        'calls',
        'compression',
        'connections',
        'grpc',
        'http2',
        'problem',
        'routes',
        'settings',
        'telemetry',
        'upstreams',
      ],
      routes: ['calls', 'compression', 'proxy', 'settings', 'upstreams'],
      telemetry: ['calls', 'filters', 'routes', 'settings', 'upstreams'],
      upstreams: ['http2', 'proxy', 'settings', 'tls'],
      admin: ['connections', 'lifecycle', 'problem', 'replay', 'settings', 'telemetry', 'upstreams'],
      replay: ['proxy'],
      tls: ['gateway', 'settings'],
      lifecycle: ['admin', 'gateway', 'settings', 'telemetry'],
      serve: [
        'admin',
        'calls',
        'grpc',
        'http2',
        'lifecycle',
        'problem',
        'proxy',
        'server',
        'settings',
        'telemetry',
        'tls',
      ],
      import: ['serve'],
    },
  },
  dashboard: {
    bottom: ['route', 'theme', 'session', 'i18n'],
    mayImport: {
      api: [],
      figures: ['api'],
      charts: ['api', 'figures'],
      parts: ['api', 'figures', 'charts'],
      rules: ['api', 'figures', 'charts', 'parts', 'editor'],
      now: ['api', 'figures', 'charts', 'parts', 'rules'],
      editor: ['api', 'parts'],
      callers: ['api', 'figures', 'charts', 'parts', 'rules'],
      services: ['api', 'figures', 'charts', 'parts'],
      views: ['api', 'callers', 'charts', 'editor', 'figures', 'now', 'parts', 'rules', 'services'],
    },
  },
}

function filesIn(folder: string): string[] {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name)
    if (statSync(path).isDirectory()) return filesIn(path)
    return /\.tsx?$/.test(name) && !/\.test\.tsx?$/.test(name) ? [path] : []
  })
}

function importsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8')
  return [...text.matchAll(/^(?:import|export) [^'"]*from '([^']+)'|\bimport\('([^']+)'\)/gm)].map(
    match => match[1] ?? match[2]!,
  )
}

/** The folder of a file at the top of `src`, or its own name there; a folder below has a layer of its own if it is listed. */
function layerOf(source: string, file: string, listed: readonly string[] = []): string {
  const path = relative(source, file)
  const inner = listed.find(name => name.includes('/') && path.startsWith(`${name}/`))
  return inner ?? path.split('/')[0]!.replace(/\.tsx?$/, '')
}

/** The relative imports of each file of a package. */
function importGraph(source: string): Map<string, string[]> {
  return new Map(
    filesIn(source).map(file => [
      file,
      importsOf(file)
        .filter(target => target.startsWith('.'))
        .map(target => resolve(dirname(file), target)),
    ]),
  )
}

/** The first cycle of imports as a path, or an empty string. */
function findCycle(graph: ReadonlyMap<string, readonly string[]>): string {
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): string => {
    const start = path.indexOf(file)
    if (start >= 0) return [...path.slice(start), file].map(one => relative(root, one)).join(' → ')
    if (done.has(file)) return ''
    for (const target of graph.get(file) ?? []) {
      const cycle = visit(target, [...path, file])
      if (cycle !== '') return cycle
    }
    done.add(file)
    return ''
  }
  for (const file of graph.keys()) {
    const cycle = visit(file, [])
    if (cycle !== '') return cycle
  }
  return ''
}

describe.each(Object.entries(packages))('the imports of the %s package', (name, { bottom, mayImport }) => {
  const source = join(root, 'packages', name, 'src')
  const graph = importGraph(source)
  const layer = (file: string): string => layerOf(source, file, Object.keys(mayImport))
  const arrows = [...graph].flatMap(([file, targets]) =>
    targets.map(target => ({ file, from: layer(file), to: layer(target) })),
  )
  const notAllowed = (layer: string, allowed: readonly string[]): string[] =>
    arrows
      .filter(({ from, to }) => from === layer && to !== layer && !allowed.includes(to))
      .map(({ file, to }) => `${relative(root, file)} → ${to}`)

  it(`the imports of the ${name} package are found at all`, () => {
    expect(arrows.length).toBeGreaterThan(50)
  })

  it.each(Object.entries(mayImport))(
    `in the ${name} package, %s imports only the layers below it`,
    (layer, allowed) => {
      expect(notAllowed(layer, [...bottom, ...allowed])).toEqual([])
    },
  )

  it.each(bottom)(`in the ${name} package, %s imports only the bottom layer`, layer => {
    expect(notAllowed(layer, bottom)).toEqual([])
  })

  it(`the sources of the ${name} package import nothing of test/, and no folder of it is for tests only`, () => {
    const ofTests = [...graph.keys()].filter(file => importsOf(file).some(target => /^@test\/|\/test\//.test(target)))
    const folders = readdirSync(source, { recursive: true, encoding: 'utf8' })
    expect(ofTests).toEqual([])
    expect(folders.filter(path => /(?:^|\/)(?:tests?|fakes|mocks|helpers)$/.test(path))).toEqual([])
  })

  it(`no import cycle exists in the ${name} package`, () => {
    expect(findCycle(graph)).toBe('')
  })
})

/** The packages and the files that importing a file loads at once: not those that a function imports later. */
function loadedBy(file: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(file)) return found
  found.add(file)
  const text = readFileSync(file, 'utf8')
  for (const [, target] of text.matchAll(/^(?:import|export) (?!type )[^'"]*from '([^']+)'/gm)) {
    if (target!.startsWith('.')) loadedBy(resolve(dirname(file), target!), found)
    else if (!target!.startsWith('node:')) found.add(target!)
  }
  return found
}

describe('what a process loads when it starts', () => {
  const source = join(root, 'packages/gateway/src')
  const loaded = (file: string): string[] => [...loadedBy(join(source, file))].map(one => one.replace(`${source}/`, ''))

  it('the diana program loads no package and no command before it knows which command is called', () => {
    expect(loaded('cli/main.ts').sort()).toEqual([
      'cli/command.ts',
      'cli/commands.ts',
      'cli/main.ts',
      'cli/run.ts',
      'version.ts',
    ])
  })

  it.each([
    ['cli/start.ts', 'admin/server/create-admin.ts'],
    ['cli/start.ts', 'demo/demo.ts'],
    ['cli/start.ts', 'gateway.ts'],
    ['cli/start.ts', 'serve/decision-server.ts'],
    ['cli/check.ts', 'admin/server/create-admin.ts'],
    ['workers/worker-main.ts', 'serve/decision-server.ts'],
    ['admin/server/create-admin.ts', 'replay/replay.ts'],
  ])('%s does not load %s before it is needed', (file, later) => {
    expect(loaded(later)).toContain(later)
    expect(loaded(file)).not.toContain(later)
  })

  it.each([
    ['workers/counting-main.ts', 'diana-limiter/gateway'],
    ['admin/server/create-admin.ts', 'prom-client'],
    ['cli/check.ts', 'fastify'],
  ])('%s does not load the package %s before it is needed', (file, later) => {
    expect(loaded(file)).not.toContain(later)
  })
})

describe('the members of a family', () => {
  const source = join(root, 'packages/limiter/src')
  /** Files that may import one member, each for a reason. */
  const exceptions: readonly string[] = [
    // the rule file itself is read before it can name a source
    'reload/live-rules.ts → sources/file.ts',
  ]

  it.each(['algorithms', 'dimensions', 'sources'])(
    'no file outside %s imports or compares the name of a member',
    family => {
      const index = join(source, family, 'index.ts')
      const members = importsOf(index)
        .map(target => resolve(dirname(index), target))
        .filter(file => !['algorithm.ts', 'dimension.ts', 'source.ts'].includes(relative(join(source, family), file)))
      const names = members.map(file => /\bname: '([\w-]+)'/.exec(readFileSync(file, 'utf8'))?.[1])
      expect(names).not.toContain(undefined)
      const comparison = new RegExp(`\\b(?:name|algorithm|dimension|source) [!=]== '(?:${names.join('|')})'`)
      const wrong = filesIn(source)
        .filter(file => layerOf(source, file) !== family && layerOf(source, file) !== 'testing')
        .flatMap(file => {
          const text = readFileSync(file, 'utf8')
          const imported = importsOf(file)
            .map(target => resolve(dirname(file), target))
            .filter(target => members.includes(target))
            .map(target => `${relative(source, file)} → ${relative(source, target)}`)
          const compared = text.split('\n').filter(line => comparison.test(line))
          return [...imported, ...compared.map(line => `${relative(source, file)}: ${line.trim()}`)]
        })
      expect(wrong.filter(one => !exceptions.includes(one))).toEqual([])
    },
  )
})

describe('what packages know of each other', () => {
  it('the gateway imports only published entry points of the limiter', () => {
    const manifest = readFileSync(join(root, 'packages/limiter/package.json'), 'utf8')
    const { exports } = JSON.parse(manifest) as { exports: object }
    const entries = Object.keys(exports).map(entry => entry.replace('.', 'diana-limiter'))
    const used = filesIn(join(root, 'packages/gateway/src'))
      .flatMap(importsOf)
      .filter(target => target.startsWith('diana-limiter'))
    expect(used.length).toBeGreaterThan(0)
    expect(used.filter(target => !entries.includes(target))).toEqual([])
  })

  it('the limiter imports frameworks and Redis clients as types only', () => {
    const atRunTime = filesIn(join(root, 'packages/limiter/src')).flatMap(file =>
      [...readFileSync(file, 'utf8').matchAll(/^import (?!type )[^'"]*from '([^'.][^']*)'/gm)].map(match => match[1]!),
    )
    const allowed = ['yaml', 'zod']
    expect([...new Set(atRunTime)].filter(name => !name.startsWith('node:') && !allowed.includes(name))).toEqual([])
  })
})
