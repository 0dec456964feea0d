import type { Problem } from './explain.ts'

/** Returns the options of a rule that have no effect together with its others. */
export function unusedOptions(options: Readonly<Record<string, unknown>>, hasStore: boolean): Problem[] {
  const problems: Problem[] = []
  const add = (name: string, what: string, atName: boolean) => problems.push({ path: [name], atName, what })
  if (options.count === 'distributed' && !hasStore) {
    add('count', 'distributed needs a store: add store: { redis: … } to the document, or write count: local', false)
  }
  if (options.whenStoreDown !== undefined && !hasStore) {
    add('whenStoreDown', 'needs a store: add store: { redis: … } to the document, or leave whenStoreDown out', true)
  }
  if (options.lease !== undefined && !hasStore) {
    add('lease', 'needs a store: add store: { redis: … } to the document, or leave lease out', true)
  }
  if (options.queue !== undefined && options.whenFull !== 'wait') {
    add('queue', 'is only for rules that wait: add whenFull: wait, or leave queue out', true)
  }
  if (options.whenFull === 'drop' && (options.match as { websocket?: unknown } | undefined)?.websocket === undefined) {
    add('whenFull', 'drop is only for messages: add match: { websocket: messages }, or write refuse', false)
  }
  if (options.missing !== undefined && [options.by ?? []].flat().length === 0) {
    add('missing', 'is only for rules that count by something: add by, or leave missing out', true)
  }
  return problems
}
