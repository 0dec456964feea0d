import type { Rule, RuleDocument } from 'diana-limiter'

/** A dimension of a rule that callers choose, and why. */
export interface FreeKey {
  readonly dimension: string
  readonly why: string
}

/** Returns the dimensions of a rule whose values callers choose freely: each value has a count of its own. */
export function freeKeysOf(rule: Rule, document: RuleDocument): FreeKey[] {
  return rule.by.flatMap(dimension => {
    const why = whyFree(dimension, rule, document)
    return why === undefined ? [] : [{ dimension, why }]
  })
}

function whyFree(dimension: string, { match }: Rule, { identify }: RuleDocument): string | undefined {
  if (Object.hasOwn(identify, dimension)) {
    const free = identify[dimension]!.find(source => whyWritten(source) !== undefined)
    return free === undefined ? undefined : `identify reads ${dimension} from ${free}, which callers write`
  }
  if (dimension === 'resource') {
    const isFixed = match.path?.every(pattern => !/[*:]/.test(pattern)) ?? false
    return isFixed ? undefined : 'callers choose the path, and its patterns match any number of paths'
  }
  if (dimension === 'host') {
    const isFixed = match.host?.every(host => !host.startsWith('*')) ?? false
    return isFixed ? undefined : 'callers write the Host header, and the rule names no hosts'
  }
  return whyWritten(dimension)
}

function whyWritten(source: string): string | undefined {
  const kind = source.slice(0, Math.max(0, source.indexOf(':')))
  if (kind === 'header' || kind === 'query' || kind === 'cookie') return `callers write ${source}`
  return undefined
}

/** Returns the number of keys of a rule, if the rule itself bounds it; otherwise Infinity. */
export function keysOf({ by, match }: Rule): number {
  let keys = 1
  for (const dimension of by) {
    if (dimension === 'method' && match.method !== undefined)
      keys *= match.method.length + (match.method.includes('GET') ? 1 : 0)
    else if (dimension === 'host' && match.host?.every(host => !host.startsWith('*'))) keys *= match.host.length
    else if (dimension === 'resource' && match.path?.every(pattern => !/[*:]/.test(pattern))) keys *= match.path.length
    else return Number.POSITIVE_INFINITY
  }
  return keys
}
