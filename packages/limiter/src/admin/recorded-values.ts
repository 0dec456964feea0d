import type { Call } from '../call.ts'
import { readerOf } from '../dimensions/key.ts'
import { engineOf } from '../engine/engine-of.ts'
import type { Limiter } from '../limiter.ts'
import type { RuleDocument } from '../rules/rule.ts'

/** The values that rules read of calls besides method, target, host and address: a log must have them so that calls can be replayed. */
export interface RecordedValues {
  /** Returns the values of dimensions that distinguish callers, by name. */
  keysOf(call: Call): Record<string, string>
  /** Headers by which rules match, or which say what a call costs. */
  readonly headers: readonly string[]
}

/** Dimensions that every log has. */
const ofTheCall = /^(?:ip|resource|method|host|query:.*)$/

let known: { readonly document: RuleDocument; readonly values: RecordedValues } | undefined

/** Returns the recorded values of the rules in force. */
export function recordedValues(limiter: Limiter): RecordedValues {
  const engine = engineOf(limiter)
  if (known?.document !== engine.document)
    known = { document: engine.document, values: valuesOf(engine.document, engine.options) }
  return known.values
}

function valuesOf(
  document: RuleDocument,
  { dimensions }: Pick<Parameters<typeof readerOf>[1], 'dimensions'>,
): RecordedValues {
  const { identify, ipv6Prefix, jwt } = document
  const ready = dimensions.map(dimension => dimension.set?.({ ipv6Prefix, jwt, nowMs: Date.now }) ?? dimension)
  const lists = [document.allow, document.deny, ...document.rules.flatMap(({ allow, deny }) => [allow, deny])]
  const names = new Set([...document.rules.flatMap(({ by }) => by), ...lists.flatMap(list => Object.keys(list ?? {}))])
  const readers = [...names].flatMap(name => {
    if (ofTheCall.test(name)) return []
    return [[name, readerOf(name, { identify, dimensions: ready })] as const]
  })
  const headers = new Set<string>()
  for (const { match, cost } of document.rules) {
    for (const name of Object.keys(match.header ?? {})) headers.add(name.toLowerCase())
    const from = typeof cost === 'object' ? cost.from : undefined
    if (from?.startsWith('header:')) headers.add(from.slice('header:'.length).toLowerCase())
  }
  return {
    headers: [...headers],
    keysOf(call) {
      const values: Record<string, string> = {}
      for (const [name, read] of readers) {
        const value = read(call)
        if (value !== undefined) values[name] = value
      }
      return values
    },
  }
}
