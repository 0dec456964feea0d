import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

interface Layers {
  /** Files and folders that import only each other; everything may import them. */
  readonly bottom: readonly string[]
  /**
   * What else a folder, or a file of the top level, may import: only what is listed above it. Entries, which are files, have no list
   * and may import all.
   */
  readonly mayImport: Readonly<Record<string, readonly string[]>>
}

const packages: Readonly<Record<string, Layers>> = {
  limiter: {
    bottom: ['call', 'errors', 'common', 'shapes', 'http'],
    mayImport: {
      algorithms: [],
      dimensions: [],
      costs: [],
      rules: ['algorithms', 'costs', 'dimensions'],
      stores: ['algorithms'],
      sources: ['rules'],
      verdict: ['rules'],
      answers: ['rules', 'verdict'],
      overload: ['rules'],
      stats: ['algorithms', 'costs', 'dimensions', 'overload', 'rules', 'stores', 'verdict'],
      decision: ['algorithms', 'costs', 'dimensions', 'rules', 'stores', 'stats', 'verdict'],
      queue: ['algorithms', 'rules', 'stores', 'stats', 'verdict', 'decision'],
      reload: ['algorithms', 'dimensions', 'rules', 'sources'],
      limits: ['algorithms', 'dimensions', 'rules', 'stores', 'sources', 'decision'],
      jobs: [],
      pacing: ['algorithms', 'jobs', 'stores'],
      client: ['jobs', 'pacing', 'stores'],
      'limiter-status': ['algorithms', 'overload', 'rules', 'stores', 'reload'],
      engine: [
        ...['algorithms', 'decision', 'dimensions', 'limiter-status', 'limits', 'overload', 'queue', 'reload', 'rules'],
        ...['stats', 'stores', 'verdict'],
      ],
      'rule-jobs': ['answers', 'decision', 'engine', 'jobs'],
      limiter: ['decision', 'engine', 'jobs', 'limiter-status', 'rule-jobs', 'rules', 'verdict'],
      create: [
        'algorithms',
        'decision',
        'dimensions',
        'engine',
        'limiter',
        'queue',
        'reload',
        'rules',
        'sources',
        'stores',
      ],
      admin: [
        ...['dimensions', 'rules', 'sources', 'stores', 'stats', 'decision', 'reload', 'engine', 'limiter', 'limits'],
        'verdict',
      ],
      metrics: ['engine', 'limiter', 'limiter-status', 'stats', 'verdict'],
      decorators: ['limiter', 'engine', 'algorithms', 'answers', 'dimensions', 'rules', 'reload', 'verdict'],
      filters: [
        ...['algorithms', 'answers', 'create', 'limiter', 'engine', 'costs', 'decision', 'verdict', 'rules'],
        'decorators',
      ],
      messages: ['filters', 'engine', 'limiter', 'verdict'],
      context: ['filters', 'verdict'],
      testing: [
        ...[
          'admin',
          'algorithms',
          'dimensions',
          'rules',
          'stores',
          'sources',
          'stats',
          'decision',
          'engine',
          'verdict',
          'limiter',
          'create',
          'filters',
        ],
      ],
    },
  },
  gateway: {
    bottom: ['settings', 'version'],
    mayImport: {
      http: [],
      replay: ['http'],
      rehearsal: ['http', 'replay'],
      services: ['http'],
      telemetry: ['http', 'services'],
      inbound: ['http', 'telemetry'],
      forwarding: ['http', 'inbound', 'services', 'telemetry'],
      serve: ['http', 'inbound', 'telemetry'],
      admin: ['http', 'inbound', 'rehearsal', 'replay', 'services', 'telemetry'],
      'prepare-gateway': ['http', 'inbound', 'services'],
      gateway: ['forwarding', 'http', 'inbound', 'prepare-gateway', 'services', 'telemetry'],
      process: ['admin', 'gateway', 'http', 'serve', 'services', 'telemetry'],
      cli: ['admin', 'prepare-gateway', 'process', 'rehearsal', 'replay', 'serve'],
    },
  },
  dashboard: {
    bottom: ['route', 'theme', 'i18n'],
    mayImport: {
      api: [],
      figures: ['api', '../../limiter/src/common/step-ring.ts'],
      charts: ['api', 'figures'],
      parts: ['api', 'figures', 'charts'],
      editor: ['api', 'parts'],
      rules: ['api', 'figures', 'charts', 'parts', 'editor'],
      now: ['api', 'figures', 'charts', 'parts', 'rules'],
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

/** The folder of a file at the top of `source`, or its own name there; a file of another package is a layer by itself. */
function layerOf(source: string, file: string): string {
  const path = relative(source, file)
  return path.startsWith('..') ? path : path.split('/')[0]!.replace(/\.tsx?$/, '')
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

/** The first cycle of imports as a path, or an empty string. `show` names a file or a folder. */
function findCycle(
  graph: ReadonlyMap<string, readonly string[]>,
  show = (file: string): string => relative(root, file),
): string {
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): string => {
    const start = path.indexOf(file)
    if (start >= 0) return [...path.slice(start), file].map(show).join(' → ')
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
  const layer = (file: string): string => layerOf(source, file)
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

  it(`in the ${name} package each folder has a list, and lists name only the layers above their own`, () => {
    const order = [...bottom, ...Object.keys(mayImport)]
    const folders = [...graph.keys()].filter(file => dirname(file) !== source).map(layer)
    const upward = Object.entries(mayImport).flatMap(([from, allowed]) =>
      allowed.filter(to => order.indexOf(to) > order.indexOf(from)).map(to => `${from} → ${to}`),
    )
    expect(folders.filter(folder => !order.includes(folder))).toEqual([])
    expect(upward).toEqual([])
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

describe('arrows between folders go one way', () => {
  /** The folders in one folder with those that each imports, types included; `withFiles` counts the files beside them, too. */
  function folderGraph(
    folder: string,
    imports: ReadonlyMap<string, readonly string[]>,
    withFiles: boolean,
  ): Map<string, string[]> {
    const within = (file: string): boolean => file.startsWith(`${folder}/`)
    const isNode = (file: string): boolean => within(file) && (withFiles || relative(folder, file).includes('/'))
    const found = new Map<string, Set<string>>()
    for (const [file, targets] of imports) {
      if (!isNode(file)) continue
      const from = layerOf(folder, file)
      const known = found.get(from) ?? new Set()
      found.set(from, known)
      for (const target of targets.filter(isNode)) known.add(layerOf(folder, target))
      known.delete(from)
    }
    return new Map([...found].map(([name, known]) => [name, [...known]]))
  }

  function pairsOf(graph: ReadonlyMap<string, readonly string[]>): string[] {
    return [...graph].flatMap(([folder, targets]) =>
      targets.filter(target => folder < target && graph.get(target)?.includes(folder)).map(one => `${folder} ↔ ${one}`),
    )
  }

  it('two folders that import each other are found, files beside them only if they are asked for', () => {
    const imports = new Map([
      ['/src/a/one.ts', ['/src/b/two.ts', '/src/c.ts']],
      ['/src/b/two.ts', ['/src/a/three.ts']],
      ['/src/c.ts', ['/src/a/one.ts']],
    ])
    expect(pairsOf(folderGraph('/src', imports, false))).toEqual(['a ↔ b'])
    expect(pairsOf(folderGraph('/src', imports, true))).toEqual(['a ↔ b', 'a ↔ c'])
  })

  const withFiles = ['limiter/src', 'limiter/src/stores', 'gateway/src', 'dashboard/src']

  it.each(withFiles)(
    'no two folders or files at the top of %s import each other, and no circle of them exists',
    path => {
      const source = join(root, 'packages', path)
      const graph = folderGraph(source, importGraph(source), true)
      expect(graph.size).toBeGreaterThan(10)
      expect(pairsOf(graph)).toEqual([])
      expect(findCycle(graph, folder => folder)).toBe('')
    },
  )

  it.each(Object.keys(packages))(
    'in the %s package no two folders of one folder import each other, at any depth',
    name => {
      const source = join(root, 'packages', name, 'src')
      const imports = importGraph(source)
      const folders = [...new Set([...imports.keys()].map(file => dirname(file)))]
      const above = folders.flatMap(folder => [folder, dirname(folder)]).filter(folder => folder.startsWith(source))
      const wrong = [...new Set(above)].flatMap(folder => {
        const graph = folderGraph(folder, imports, false)
        const cycle = findCycle(graph, one => one)
        return [...pairsOf(graph), cycle].filter(Boolean).map(one => `${relative(root, folder)}: ${one}`)
      })
      expect(above.length).toBeGreaterThan(5)
      expect(wrong).toEqual([])
    },
  )
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
      'cli/commands.ts',
      'cli/main.ts',
      'cli/run.ts',
      'process/terminal.ts',
      'version.ts',
    ])
  })

  it.each([
    ['cli/start.ts', 'admin/server/create-admin.ts'],
    ['cli/start.ts', 'cli/demo/demo.ts'],
    ['cli/start.ts', 'gateway.ts'],
    ['cli/start.ts', 'serve/decision-server.ts'],
    ['cli/check.ts', 'admin/server/create-admin.ts'],
    ['process/workers/worker-main.ts', 'serve/decision-server.ts'],
    ['admin/server/create-admin.ts', 'replay/replay.ts'],
  ])('%s does not load %s before it is needed', (file, later) => {
    expect(loaded(later)).toContain(later)
    expect(loaded(file)).not.toContain(later)
  })

  it.each([
    ['process/workers/counting-main.ts', 'diana-limiter/gateway'],
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
        .filter(
          file =>
            !['algorithm.ts', 'options.ts', 'dimension.ts', 'source.ts'].includes(relative(join(source, family), file)),
        )
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
    const allowed = ['yaml']
    expect([...new Set(atRunTime)].filter(name => !name.startsWith('node:') && !allowed.includes(name))).toEqual([])
  })
})
