import { idFor } from '../../serve/rate-limit/import-envoy.ts'
import type { Imported, ImportedRule } from './imported.ts'

/** A directive with its words, and those of its block if it has one. */
interface Directive {
  readonly words: readonly string[]
  readonly line: number
  readonly block?: readonly Directive[]
}

/** One limit in force at a place: the directive that says so, and the status and mode that are in force there. */
interface Limit {
  readonly directive: Directive
  readonly status: string
  readonly isDry: boolean
}

interface Inherited {
  readonly requests: readonly Directive[]
  readonly connections: readonly Directive[]
  readonly settings: Readonly<Record<string, string>>
}

/** A place at which limits hold: a location, or a server outside its locations. */
interface Place {
  readonly hosts: readonly string[]
  /** Patterns of paths; none for all. */
  readonly paths: readonly string[]
  readonly limits: readonly Limit[]
}

interface Zone {
  readonly key: string
  readonly rate: string | undefined
}

const keys: Readonly<Record<string, string | undefined>> = {
  $binary_remote_addr: 'ip',
  $remote_addr: 'ip',
  $server_name: 'host',
  $host: 'host',
  $http_host: 'host',
  $request_method: 'method',
}
const NOTHING: Inherited = { requests: [], connections: [], settings: {} }
const MOST_DEPTH = 32

/** Makes rules of `limit_req` and `limit_conn` in a configuration of nginx; throws if it cannot be read. */
export function importNginx(text: string, ids: Set<string> = new Set()): Imported {
  const directives = parseDirectives(text)
  // a single server gets the calls to any host
  const isOnly = countServers(directives) === 1
  const warnings: string[] = []
  const zones = new Map<string, Zone>()
  const places: Place[] = []
  const read = (block: readonly Directive[], above: Inherited, server: Omit<Place, 'limits'> | undefined): void => {
    for (const { words, line } of block) {
      if (words[0] === 'limit_req_zone' || words[0] === 'limit_conn_zone') readZone(words, zones)
      if (words[0] === 'include') warnings.push(`line ${line}: include ${words[1]} is not read: import that file too`)
    }
    const inherited = inheritedBy(block, above)
    const locations = block.filter(({ words }) => words[0] === 'location')
    // with a location for all paths, no call is left for the server itself
    const hasRest = !locations.some(({ words }) => words.length === 2 && words[1] === '/')
    if (server && hasRest) places.push({ ...server, limits: limitsOf(inherited) })
    for (const one of locations) {
      const paths = pathsOf(one, warnings)
      if (paths) read(one.block ?? [], inherited, { hosts: server?.hosts ?? [], paths })
    }
    for (const { words, block: inner } of block) {
      if (words[0] === 'location' || inner === undefined) continue
      read(inner, inherited, words[0] === 'server' ? { hosts: isOnly ? [] : hostsOf(inner), paths: [] } : undefined)
    }
  }
  const hasServers = directives.some(({ words }) => ['http', 'server', 'location'].includes(words[0]!))
  read(directives, NOTHING, hasServers ? undefined : { hosts: [], paths: [] })
  return { rules: rulesOf(places, { zones, ids, warnings }), warnings }
}

function countServers(block: readonly Directive[]): number {
  return block.reduce((sum, { words, block: inner = [] }) => sum + (words[0] === 'server' ? 1 : countServers(inner)), 0)
}

/** Returns what holds in a block: limits of its own replace those above it. */
function inheritedBy(block: readonly Directive[], above: Inherited): Inherited {
  const named = (name: string): readonly Directive[] => block.filter(({ words }) => words[0] === name)
  const orAbove = (own: readonly Directive[], others: readonly Directive[]) => (own.length > 0 ? own : others)
  const settings = block.filter(({ words }) => /^limit_(?:req|conn)_(?:status|dry_run)$/.test(words[0]!))
  return {
    requests: orAbove(named('limit_req'), above.requests),
    connections: orAbove(named('limit_conn'), above.connections),
    settings: { ...above.settings, ...Object.fromEntries(settings.map(({ words }) => [words[0], words[1]])) },
  }
}

function limitsOf({ requests, connections, settings }: Inherited): Limit[] {
  return [...requests, ...connections].map(directive => {
    const kind = directive.words[0]!
    return { directive, status: settings[`${kind}_status`] ?? '503', isDry: settings[`${kind}_dry_run`] === 'on' }
  })
}

function readZone([, key = '', ...words]: readonly string[], zones: Map<string, Zone>): void {
  const zone = parameterOf(words, 'zone')?.split(':')[0]
  if (zone !== undefined) zones.set(zone, { key, rate: parameterOf(words, 'rate') })
}

function parameterOf(words: readonly string[], name: string): string | undefined {
  return words.find(word => word.startsWith(`${name}=`))?.slice(name.length + 1)
}

function hostsOf(block: readonly Directive[]): string[] {
  const names = block.filter(({ words }) => words[0] === 'server_name').flatMap(({ words }) => words.slice(1))
  // a name such as _ or a pattern is for whatever no other server is for
  return names.every(name => /^(?:\*\.)?[\w-]+(?:\.[\w-]+)*$/.test(name) && name !== '_') ? names : []
}

/** Returns the patterns of a location; undefined if there are none for it. */
function pathsOf({ words, line }: Directive, warnings: string[]): readonly string[] | undefined {
  const [mode, path] = words.length > 2 ? [words[1], words[2]!] : ['', words[1] ?? '']
  if (path.startsWith('@')) return undefined
  if (!path.startsWith('/') || mode === '~' || mode === '~*' || /[*:]/.test(path)) {
    warnings.push(`line ${line}: location ${words.slice(1).join(' ')} is left out: write its match by hand`)
    return undefined
  }
  if (mode === '=') return [path]
  if (path === '/') return []
  return path.endsWith('/') ? [`${path}**`] : [path, `${path}/**`]
}

interface RuleParts {
  readonly zones: ReadonlyMap<string, Zone>
  readonly ids: Set<string>
  readonly warnings: string[]
}

/** Makes one rule of the places at which a zone is used in the same way. */
function rulesOf(places: readonly Place[], { zones, ids, warnings }: RuleParts): ImportedRule[] {
  const uses = new Map<string, { readonly limit: Limit; readonly places: Place[] }>()
  for (const place of places) {
    for (const limit of place.limits) {
      const name = JSON.stringify([limit.directive.words, limit.status, limit.isDry, place.hosts])
      const use = uses.get(name) ?? { limit, places: [] }
      use.places.push(place)
      uses.set(name, use)
    }
  }
  const timesUsed = new Map<string, number>()
  const rules: ImportedRule[] = []
  for (const { limit, places: used } of uses.values()) {
    const { words, line } = limit.directive
    const name = zoneOf(limit)
    const zone = zones.get(name)
    if (zone === undefined) {
      warnings.push(`line ${line}: the zone ${name} is not in this file`)
      continue
    }
    const made = countOf(words, zone)
    if (typeof made === 'string') {
      warnings.push(`line ${line}: ${made}`)
      continue
    }
    timesUsed.set(name, (timesUsed.get(name) ?? 0) + 1)
    const isEverywhere = used.some(({ paths }) => paths.length === 0)
    const { hosts } = used[0]!
    const paths = isEverywhere ? [] : [...new Set(used.flatMap(one => one.paths))]
    const others = places.filter(
      one => !used.includes(one) && String(one.hosts) === String(hosts) && one.paths.length > 0,
    )
    for (const one of isEverywhere ? others : []) {
      warnings.push(
        `line ${line}: the rule of ${name} also counts ${one.paths[0]}, which this limit does not count there`,
      )
    }
    const match = { ...(hosts.length > 0 && { host: hosts }), ...(paths.length > 0 && { path: paths }) }
    rules.push({
      id: idFor(name, ids),
      ...(Object.keys(match).length > 0 && { match }),
      ...made,
      ...(limit.isDry && { whenFull: 'shadow' }),
      ...(limit.status !== '503' && { answer: { status: Number(limit.status) } }),
    })
  }
  for (const [name, times] of timesUsed) {
    if (times > 1) warnings.push(`zone ${name} is used in ${times} ways, which are ${times} rules with a count each`)
  }
  return rules
}

function zoneOf({ directive: { words } }: Limit): string {
  return (words[0] === 'limit_req' ? parameterOf(words, 'zone') : words[1]) ?? ''
}

/** Returns the key and the amount of a limit; text says why it cannot be converted. */
function countOf(words: readonly string[], { key, rate }: Zone): Omit<ImportedRule, 'id'> | string {
  const header = /^\$http_([a-z\d_]+)$/.exec(key)?.[1]?.replaceAll('_', '-')
  const cookie = /^\$cookie_(\w+)$/.exec(key)?.[1]
  const argument = /^\$arg_(\w+)$/.exec(key)?.[1]
  const named =
    (cookie && `cookie:${cookie}`) || (argument && `query:${argument}`) || (header && `header:${header}`) || undefined
  const by = keys[key] ?? named
  if (by === undefined) return `the key ${key} is left out: name a dimension by hand`
  // nginx does not count an empty key
  const counted = { by, ...(named !== undefined && by === named && { missing: 'skip' }) }
  if (words[0] === 'limit_conn') {
    const most = Number(words[2])
    return most >= 1 ? { ...counted, limit: most, algorithm: 'concurrency' } : 'limit_conn has no number'
  }
  const [, count, unit] = /^(\d+)r\/([sm])$/.exec(rate ?? '') ?? []
  if (count === undefined) return `the rate ${rate} is not known`
  const burst = Number(parameterOf(words, 'burst') ?? 0)
  const delay = Number(parameterOf(words, 'delay') ?? 0)
  const waits = burst > 0 && !words.includes('nodelay') && delay < burst
  return {
    ...counted,
    limit: `${count}/${unit}`,
    algorithm: 'leaky-bucket',
    ...(burst > 0 && { burst }),
    ...(waits && delay > 0 && { delay }),
    ...(waits && { whenFull: 'wait' }),
  }
}

/** Returns the directives of a configuration, with their blocks. */
function parseDirectives(text: string): readonly Directive[] {
  const open: { words: string[]; line: number; block: Directive[] }[] = [{ words: [], line: 1, block: [] }]
  let words: string[] = []
  let line = 1
  let startLine = 1
  const tokens = /\n|#[^\n]*|"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|[{};"']|(?:\$\{\w+\}|[^\s{};"'])+/g
  for (const [token, double, single] of text.matchAll(tokens)) {
    const top = open.at(-1)!
    if (token === '\n') line++
    else if (token === '"' || token === "'") throw new Error(`line ${line}: a quote has no end`)
    else if (token.startsWith('#')) continue
    else if (token === ';') {
      if (words.length > 0) top.block.push({ words, line: startLine })
      words = []
    } else if (token === '{') {
      if (open.length > MOST_DEPTH) throw new Error(`line ${line}: blocks are nested in more than ${MOST_DEPTH} others`)
      open.push({ words: words.length > 0 ? words : [''], line: startLine, block: [] })
      words = []
    } else if (token === '}') {
      if (open.length === 1 || words.length > 0) throw new Error(`line ${line}: } is not expected here`)
      open.pop()
      open.at(-1)!.block.push(top)
    } else {
      if (words.length === 0) startLine = line
      words.push(double ?? single ?? token)
      line += token.split('\n').length - 1
    }
  }
  if (open.length > 1) throw new Error(`line ${open.at(-1)!.line}: a block has no end`)
  if (words.length > 0) throw new Error(`line ${startLine}: ${JSON.stringify(words[0])} has no semicolon`)
  return open[0]!.block
}
