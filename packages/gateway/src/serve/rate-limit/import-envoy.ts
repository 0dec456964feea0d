import { explain, z } from 'diana-limiter/schema'
import { escapeName } from './descriptor-call.ts'

const units: Readonly<Record<string, string>> = {
  ...{ second: 's', minute: 'm', hour: 'h', day: 'd', week: '7d' },
  // as the service counts them
  ...{ month: '30d', year: '365d' },
}

interface Node {
  readonly key: string
  readonly value?: string | undefined
  readonly rate_limit?: RateLimit | undefined
  readonly shadow_mode?: boolean | undefined
  readonly share_threshold?: boolean | undefined
  readonly descriptors?: readonly Node[] | undefined
}

interface RateLimit {
  readonly unit?: string | undefined
  readonly requests_per_unit?: number | undefined
  readonly unlimited?: boolean | undefined
  readonly name?: string | undefined
}

const rateLimit = z.looseObject({
  unit: z.string().optional(),
  requests_per_unit: z
    .int()
    .min(0)
    .max(2 ** 32 - 1)
    .optional(),
  unlimited: z.boolean().optional(),
  name: z.string().optional(),
})

const node: z.Schema<Node> = z.looseObject({
  key: z.string().min(1),
  // YAML reads 5 and true as what they are
  value: z.union([z.string(), z.number(), z.boolean()]).transform(String).optional(),
  rate_limit: rateLimit.optional(),
  shadow_mode: z.boolean().optional(),
  share_threshold: z.boolean().optional(),
  get descriptors() {
    return z.array(node).optional()
  },
}) as never

const file = z.looseObject({ domain: z.string().min(1), descriptors: z.array(node).default([]) })

/** Words of the service's configuration that have no counterpart, or none that is needed. */
const unconverted = ['replaces', 'quota_mode']

/** A rule of the rule file, as far as it is made here. */
export interface ImportedRule {
  readonly id: string
  readonly match: { readonly attribute: Readonly<Record<string, string | readonly string[]>> }
  readonly by?: readonly string[] | undefined
  readonly limit: string
  readonly whenFull?: 'shadow' | undefined
}

export interface Imported {
  readonly rules: readonly ImportedRule[]
  /** The parts that could not be converted, each in a sentence. */
  readonly warnings: readonly string[]
}

/** One entry of a path through the tree: which values of a key belong to it, and whether they are counted apart. */
interface Step {
  readonly name: string
  readonly key: string
  readonly values: readonly string[]
  readonly isCounted: boolean
}

const maxDepth = 32

/** Makes rules of a configuration of Envoy's reference rate limit service; throws if it is none. */
export function importEnvoyRatelimit(configuration: unknown, ids: Set<string> = new Set()): Imported {
  const { data, problems } = explain(file, configuration)
  if (data === undefined) {
    const [problem] = problems
    throw new Error(`${problem?.path.map(String).join('.') || 'the file'} ${problem?.what ?? 'cannot be read'}`)
  }
  const { domain, descriptors } = data
  const rules: ImportedRule[] = []
  const warnings: string[] = []
  const walk = (nodes: readonly Node[], above: readonly Step[]): void => {
    if (above.length === maxDepth) throw new Error(`descriptors are nested in more than ${maxDepth} others`)
    for (const [index, one] of nodes.entries()) {
      const path = [...above, stepOf(one, nodes.slice(0, index), nodes, above)]
      const where = path.map(({ name }) => name).join(' > ')
      for (const word of unconverted) {
        if (word in one || (one.rate_limit && word in one.rate_limit)) warnings.push(`${where}: ${word} is left out`)
      }
      if (one.value?.startsWith('!'))
        warnings.push(`${where}: a value that begins with "!" would be read as an exception`)
      const rule = ruleOf(domain, path, one, ids)
      if (typeof rule === 'string') warnings.push(`${where}: ${rule}`)
      else if (rule) rules.push(rule)
      walk(one.descriptors ?? [], path)
    }
  }
  walk(descriptors, [])
  return { rules, warnings }
}

/** Makes the step of a node in the order in which the service looks for one: an exact value first, then the first pattern that matches, then the entry without a value. */
function stepOf(one: Node, before: readonly Node[], siblings: readonly Node[], above: readonly Step[]): Step {
  const others = siblings.filter(({ key, value }) => key === one.key && value !== undefined && value !== one.value)
  const isPattern = one.value?.endsWith('*') === true
  const stronger = others.filter(other => {
    if (one.value === undefined) return true
    return isPattern && (!other.value!.endsWith('*') || before.includes(other))
  })
  const exceptions = stronger.map(({ value }) => `!${value}`)
  const values = [one.value ?? '*', ...exceptions]
  const isCounted = (one.value === undefined || isPattern) && one.share_threshold !== true
  const earlier = above.filter(({ name }) => name === one.key || name.startsWith(`${one.key}#`)).length
  const key =
    earlier === 0 && !reserved.includes(one.key)
      ? one.key
      : `${one.key}#${earlier + (reserved.includes(one.key) ? 2 : 1)}`
  return { name: one.key, key, values, isCounted }
}

/** The names of attributes that every descriptor has. */
const reserved: readonly string[] = ['domain', 'descriptor']

function ruleOf(
  domain: string,
  path: readonly Step[],
  { rate_limit: limit, shadow_mode: isShadow = false }: Node,
  ids: Set<string>,
): ImportedRule | string | undefined {
  // without a limit, and without one on purpose: nothing is counted
  if (limit === undefined || limit.unlimited === true) return undefined
  const period = units[(limit.unit ?? '').toLowerCase()]
  if (period === undefined) return `the unit ${JSON.stringify(limit.unit)} is not known`
  const attribute: Record<string, string | readonly string[]> = {
    domain,
    descriptor: path.map(({ name }) => escapeName(name)).join(','),
  }
  for (const { key, values } of path) attribute[key] = values.length === 1 ? values[0]! : values
  const by = path.filter(({ isCounted }) => isCounted).map(({ key }) => `attribute:${key}`)
  return {
    id: idFor(limit.name ?? [domain, ...path.map(wordOf)].join('-'), ids),
    match: { attribute },
    ...(by.length > 0 && { by }),
    limit: `${limit.requests_per_unit ?? 0}/${period}`,
    ...(isShadow && { whenFull: 'shadow' as const }),
  }
}

function wordOf({ name, values }: Step): string {
  return values[0] === '*' ? name : `${name}-${values[0]}`
}

/** Returns an id that no rule has yet, of letters that ids may have. */
export function idFor(text: string, ids: Set<string>): string {
  const plain =
    text
      .replaceAll(/[^\w.-]+/g, '-')
      .replaceAll(/^-+|-+$/g, '')
      .slice(0, 100) || 'rule'
  let id = plain
  for (let count = 2; ids.has(id); count++) id = `${plain}-${count}`
  ids.add(id)
  return id
}
