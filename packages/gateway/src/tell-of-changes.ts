import type { Limiter } from 'diana-limiter'

interface Lines {
  print(line: string): void
  complain(line: string): void
}

/** One line whenever the rules or a store change their state, and for what went wrong before anybody could be told. */
export function tellOfChanges(limiter: Limiter, lines: Lines): void {
  const { events } = limiter
  for (const { name, version, fromSnapshot, trouble } of limiter.status().sources) {
    if (trouble !== undefined) lines.complain(`Diana starts without new rules from ${name}:\n${trouble}`)
    if (fromSnapshot) lines.print(`Diana goes on with the rules that ${name} had (version ${version})`)
  }
  events.on('rules', ({ name, version }) => lines.print(`Diana took new rules from ${name} (version ${version})`))
  events.on('rejected', ({ name, trouble }) => {
    lines.complain(`Diana keeps her last good rules, since the new ones from ${name} cannot be obeyed:\n${trouble}`)
  })
  events.on('store', ({ healthy, kind, trouble, fleet }) => {
    if (healthy) lines.print('Diana counts in Redis again')
    else if (kind === 'misconfigured') {
      lines.complain(`Diana cannot count in Redis until store.redis is mended, its user, password or ACL: ${trouble}`)
    } else if (kind === 'lost') {
      lines.complain(`Diana tells Redis again what was counted: ${trouble}`)
    } else {
      const part = fleet.size === 1 ? '' : `, her part of ${fleet.size}`
      lines.complain(`Diana counts in this process${part}, since Redis cannot be asked: ${trouble}`)
    }
  })
  events.on('counting', ({ healthy, trouble }) => {
    if (healthy) lines.print('The workers count together again')
    else lines.complain(`The workers count by themselves, since the counting process cannot be asked: ${trouble}`)
  })
  events.on('failure', ({ trouble }) => lines.complain(`Diana keeps her last good rules: ${trouble}`))
}
