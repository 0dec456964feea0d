import type { Limiter, StoreStatus } from 'diana-limiter'

interface Lines {
  print(line: string): void
  printError(line: string): void
}

/** Logs one line whenever the rules or a store change their state, and for what went wrong before it could be reported. */
export function logChanges(limiter: Limiter, lines: Lines): void {
  const { events } = limiter
  for (const { name, version, fromSnapshot, trouble } of limiter.status().sources) {
    if (trouble !== undefined) lines.printError(`Diana starts without new rules from ${name}:\n${trouble}`)
    if (fromSnapshot) lines.print(`Diana uses the last known rules of ${name} (version ${version})`)
  }
  events.on('rules', ({ name, version }) => lines.print(`Diana applied new rules from ${name} (version ${version})`))
  events.on('rejected', ({ name, trouble }) => {
    lines.printError(`Diana keeps its last good rules, since the new ones from ${name} are not valid:\n${trouble}`)
  })
  const { store } = limiter.status()
  if (store && !store.healthy) lines.printError(describeTrouble(store))
  events.on('store', status => {
    if (status.healthy) lines.print('Diana counts in Redis again')
    else lines.printError(describeTrouble(status))
  })
  events.on('counting', ({ healthy, what, remedy }) => {
    if (healthy) lines.print('The workers count together again')
    else lines.printError(`The workers count by themselves, since ${what}: ${remedy}`)
  })
  events.on('missing', ({ trouble }) => lines.printError(`Diana has no remote rules: ${trouble}`))
  events.on('failure', ({ trouble }) => lines.printError(`Diana keeps its last good rules: ${trouble}`))
}

function describeTrouble({ kind, code, what, trouble, remedy, fleet }: StoreStatus): string {
  if (kind === 'lost') return `Diana restores the counts in Redis (${code}: ${trouble}): ${remedy}`
  const part = fleet.size === 1 ? '' : `, with a share of 1/${fleet.size}`
  return `Diana counts in this process${part}, since ${what} (${code}: ${trouble}): ${remedy}`
}
