import type { Route } from '../routes/route.ts'
import { isOfTheConnection, namedByConnection } from './connection-headers.ts'

type OwnHeaders = Readonly<Record<string, number | string | readonly string[] | undefined>>

/** What the caller is told: the service's headers, beside what Diana and the filters have said. Names and values in turn. */
export function headersToCaller(received: readonly Buffer[], own: OwnHeaders, route: Route): string[] {
  const flat: string[] = []
  let said: Set<string> | undefined
  let named: ReadonlySet<string> | undefined
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!.toString('latin1').toLowerCase()
    if (name === 'connection') named = namedByConnection(received[at + 1]!.toString('latin1').toLowerCase())
    if (isOfTheConnection(name) || (route.changesResponse && isChanged(name, route))) continue
    const value = received[at + 1]!.toString('latin1')
    const mine = own[name]
    if (mine === undefined) flat.push(name, value)
    else {
      flat.push(name, !isJoined(name) || said?.has(name) ? value : `${mine}, ${value}`)
      said ??= new Set()
      said.add(name)
    }
  }
  for (const name in own) {
    const value = own[name]
    if (value === undefined || said?.has(name)) continue
    if (typeof value === 'object') for (const one of value) flat.push(name, one)
    else flat.push(name, String(value))
  }
  if (route.changesResponse) {
    const { set } = route.settings.responseHeaders
    for (const name in set) flat.push(name, set[name]!)
  }
  return named === undefined ? flat : without(flat, named)
}

/** Lists to which everybody on the way adds his own items. */
function isJoined(name: string): boolean {
  return name === 'ratelimit' || name === 'ratelimit-policy' || name === 'vary'
}

function isChanged(name: string, { settings: { responseHeaders } }: Route): boolean {
  return Object.hasOwn(responseHeaders.set, name) || responseHeaders.remove.includes(name)
}

function without(flat: readonly string[], named: ReadonlySet<string>): string[] {
  return flat.filter((_, at) => !named.has(flat[at - (at % 2)]!))
}
