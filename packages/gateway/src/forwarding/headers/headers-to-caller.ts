import { isOfTheConnection, namedByConnection } from '../../http/connection-headers.ts'
import { RecentTexts } from '../../http/recent-texts.ts'
import type { Route } from '../../services/routes/route.ts'
import { asCallerSees, type Exchange, namesAddress } from './own-addresses.ts'

type OwnHeaders = Readonly<Record<string, number | string | readonly string[] | undefined>>

/** The head of a service's answer: names in lower case and values, in turn. */
export interface AnswerHead {
  readonly status: number
  readonly received: readonly string[]
}

const names = new RecentTexts('in lower case')
const values = new RecentTexts('as they are')

/** The headers of an answer as undici gives them, as text. */
export function textsOf(received: readonly Buffer[]): string[] {
  const texts: string[] = []
  for (let at = 0; at + 1 < received.length; at += 2) {
    texts.push(names.textOf(received[at]!), values.textOf(received[at + 1]!))
  }
  return texts
}

/** What the caller is told: the service's headers, beside what Diana and the filters have said. Names and values in turn. */
export function headersToCaller({ status, received }: AnswerHead, own: OwnHeaders, exchange: Exchange): string[] {
  const { route } = exchange
  const flat: string[] = []
  let said: Set<string> | undefined
  const ending = endingHere(received)
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!
    if (isOfTheConnection(name) || ending?.has(name) || (route.changesResponse && isChanged(name, route))) continue
    // an answer that has no body must not announce one (RFC 9110, section 8.6); __proto__ is no key of an object
    if ((name === 'content-length' && status === 204) || name === '__proto__') continue
    const text = received[at + 1]!
    const value = namesAddress(name) ? asCallerSees(name, text, exchange) : text
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
  return flat
}

/** What the service says is for this connection only, on however many lines; throws for codings that nobody has taken off. */
function endingHere(received: readonly string[]): Set<string> | undefined {
  let ending: Set<string> | undefined
  let isChunked = false
  for (let at = 0; at + 1 < received.length; at += 2) {
    const name = received[at]!
    if (name !== 'connection' && name !== 'transfer-encoding') continue
    const value = received[at + 1]!.toLowerCase()
    if (name === 'connection') {
      const named = namedByConnection(value)
      if (named) for (const one of named) ending = (ending ?? new Set()).add(one)
    } else if (isChunked || value.trim() !== 'chunked') {
      throw Object.assign(new Error(`the coding ${value}`), { code: 'ERR_HTTP_TRANSFER_CODING' })
    } else isChunked = true
  }
  return ending
}

/** Lists to which everybody on the way adds his own items. */
function isJoined(name: string): boolean {
  return name === 'ratelimit' || name === 'ratelimit-policy' || name === 'vary'
}

function isChanged(name: string, { settings: { responseHeaders } }: Route): boolean {
  return Object.hasOwn(responseHeaders.set, name) || responseHeaders.remove.includes(name)
}
