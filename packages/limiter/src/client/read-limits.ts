/*
 * What servers say of their limits, in any of the ways in which they do. All of it is the text of a stranger: numbers are bounded, what
 * cannot be read is left out, and no answer makes a client wait for ever.
 */

/** One limit as an answer reports it. */
export interface ReportedLimit {
  /** Its name in the answer; '' if it has none. */
  readonly name: string
  readonly limit: number | undefined
  readonly remaining: number
  /** The time until it is as if there had been no calls; undefined if the answer does not say. */
  readonly resetMs: number | undefined
  readonly windowMs: number | undefined
  /** True if calls cost 1 each; tokens and the like are counted in other units. */
  readonly countsCalls: boolean
}

const MOST_LIMITS = 8
const MOST_TEXT = 2000
const LARGEST = 1e12
/** Numbers above are moments since 1970, in seconds; above the second, in milliseconds. */
const EPOCH_SECONDS = 1e9
const EPOCH_MS = 1e12
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

type Get = (name: string) => string | null

/** Reads all limits of an answer, at most eight. */
export function readLimits(headers: Headers, nowMs: number): ReportedLimit[] {
  const get: Get = name => {
    const text = headers.get(name)
    return text === null || text.length > MOST_TEXT ? null : text
  }
  const serverMs = dateOf(get('date')) ?? nowMs
  const listed = readLists(get, serverMs)
  if (listed.length > 0) return listed.slice(0, MOST_LIMITS)
  const found: ReportedLimit[] = []
  const policyMs = windowOfPolicy(get('ratelimit-policy'))
  for (const prefix of ['ratelimit', 'x-ratelimit', 'x-rate-limit']) {
    const reported = readPlain(get, prefix, '', serverMs, policyMs)
    if (reported) found.push({ ...reported, name: get('x-ratelimit-resource')?.slice(0, 100) ?? '' })
    if (reported) break
  }
  for (const prefix of ['x-ratelimit', 'anthropic-ratelimit']) {
    for (const unit of ['requests', 'tokens', 'input-tokens', 'output-tokens']) {
      const reported = readPlain(get, prefix, unit, serverMs)
      if (reported) found.push({ ...reported, name: unit, countsCalls: unit === 'requests' })
    }
  }
  const bucket = /^(\d{1,9})\/(\d{1,9})$/.exec(get('x-shopify-shop-api-call-limit')?.trim() ?? '')
  if (bucket) {
    const limit = Number(bucket[2])
    const remaining = Math.max(0, limit - Number(bucket[1]))
    found.push({ name: 'bucket', limit, remaining, resetMs: undefined, windowMs: undefined, countsCalls: true })
  }
  return found.slice(0, MOST_LIMITS)
}

/** Returns the milliseconds that an answer asks its caller to wait; undefined if it does not, or in a way that cannot be read. */
export function readRetryAfter(headers: Headers, nowMs: number): number | undefined {
  const ms = numberOf(headers.get('retry-after-ms'))
  if (ms !== undefined) return Math.max(0, ms)
  const text = headers.get('retry-after')?.trim()
  if (text === undefined || text === '' || text.length > 100) return undefined
  const seconds = numberOf(text)
  if (seconds !== undefined) return Math.max(0, seconds * 1000)
  const moment = dateOf(text)
  // by the server's own clock, if it shows it
  return moment === undefined ? undefined : Math.max(0, moment - (dateOf(headers.get('date')) ?? nowMs))
}

/** Reads drafts 8 to 11: `"name";r=5;t=10` beside `"name";q=100;w=60`; draft 7: `limit=100, remaining=5, reset=10`. */
function readLists(get: Get, serverMs: number): ReportedLimit[] {
  const text = get('ratelimit')
  if (text === null) return []
  const policies = new Map(membersOf(get('ratelimit-policy') ?? '').map(one => [one.name, one.parameters]))
  const members = membersOf(text)
  const found: ReportedLimit[] = []
  for (const { name, parameters } of members) {
    const remaining = numberOf(parameters.get('r'))
    if (remaining === undefined) continue
    const policy = policies.get(name)
    const limit = positive(numberOf(policy?.get('q')))
    const seconds = numberOf(parameters.get('t'))
    const window = positive(numberOf(policy?.get('w')))
    const unit = policy?.get('qu')
    // slots are not used up: they come back when calls end
    if (unit === 'concurrent-requests') continue
    found.push({
      ...boundedRemaining(remaining, limit),
      name: name.slice(0, 100),
      resetMs: seconds === undefined ? undefined : Math.max(0, seconds * 1000),
      windowMs: window === undefined ? undefined : window * 1000,
      countsCalls: unit === undefined || unit === 'requests',
    })
  }
  if (found.length > 0) return found
  const numbers = new Map(members.map(({ name, value }) => [name, value]))
  const remaining = numberOf(numbers.get('remaining'))
  if (remaining === undefined) return []
  const reported = {
    ...boundedRemaining(remaining, positive(numberOf(numbers.get('limit')))),
    resetMs: resetOf(numbers.get('reset'), serverMs),
  }
  return [{ ...reported, name: '', windowMs: windowOfPolicy(get('ratelimit-policy')), countsCalls: true }]
}

function readPlain(
  get: Get,
  prefix: string,
  unit: string,
  serverMs: number,
  windowMs?: number,
): ReportedLimit | undefined {
  const suffix = unit === '' ? '' : `-${unit}`
  // Anthropic puts the unit before the number that is reported
  const read = (what: string): string | null =>
    get(`${prefix}-${what}${suffix}`) ?? (unit === '' ? null : get(`${prefix}${suffix}-${what}`))
  const remaining = numberOf(read('remaining'))
  if (remaining === undefined) return undefined
  const after = numberOf(read('reset-after'))
  return {
    ...boundedRemaining(remaining, positive(numberOf(read('limit')?.split(/[,;]/)[0]))),
    name: '',
    resetMs: after === undefined ? resetOf(read('reset') ?? undefined, serverMs) : Math.max(0, after * 1000),
    windowMs,
    countsCalls: true,
  }
}

/** Reads the window of the policy, if there is one only: `100;w=60`. */
function windowOfPolicy(text: string | null): number | undefined {
  if (text === null) return undefined
  const windows = membersOf(text).flatMap(({ parameters }) => positive(numberOf(parameters.get('w'))) ?? [])
  return windows.length === 1 ? windows[0]! * 1000 : undefined
}

function boundedRemaining(remaining: number, limit: number | undefined): Pick<ReportedLimit, 'limit' | 'remaining'> {
  const left = Math.max(0, Math.floor(remaining))
  return { limit, remaining: limit === undefined ? left : Math.min(left, limit) }
}

interface Member {
  readonly name: string
  readonly value: string | undefined
  readonly parameters: ReadonlyMap<string, string>
}

/** Reads the members of a list of structured fields, as far as limits need them. */
function membersOf(text: string): Member[] {
  const members = text.match(/(?:[^",]|"(?:[^"\\]|\\.)*")+/g) ?? []
  return members.slice(0, 2 * MOST_LIMITS).map(member => {
    const [head = '', ...rest] = member.match(/(?:[^";]|"(?:[^"\\]|\\.)*")+/g) ?? []
    const [key = '', value] = splitOnce(head)
    const parameters = new Map(rest.slice(0, 20).map(one => splitOnce(one).map(unquoted) as [string, string]))
    return { name: unquoted(key), value, parameters }
  })
}

function splitOnce(text: string): [string, string | undefined] {
  const at = text.startsWith('"') ? -1 : text.indexOf('=')
  return at < 0 ? [text.trim(), undefined] : [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

function unquoted(text: string | undefined): string {
  const trimmed = text?.trim() ?? ''
  return /^".*"$/.test(trimmed) ? trimmed.slice(1, -1).replace(/\\(.)/g, '$1') : trimmed
}

/** Seconds, a moment since 1970 in seconds or milliseconds, a date, or a duration such as `6m0s`. */
function resetOf(text: string | undefined, serverMs: number): number | undefined {
  if (text === undefined) return undefined
  const number = numberOf(text)
  if (number === undefined) {
    const moment = dateOf(text)
    return durationOf(text) ?? (moment === undefined ? undefined : Math.max(0, moment - serverMs))
  }
  if (number >= EPOCH_MS) return Math.max(0, number - serverMs)
  if (number >= EPOCH_SECONDS) return Math.max(0, number * 1000 - serverMs)
  return Math.max(0, number * 1000)
}

function durationOf(text: string): number | undefined {
  if (!/^(?:\d{1,9}(?:\.\d{1,9})?(?:ms|[smhd]))+$/.test(text)) return undefined
  let ms = 0
  for (const [, count, unit] of text.matchAll(/([\d.]+)(ms|[smhd])/g)) ms += Number(count) * UNIT_MS[unit!]!
  return ms
}

/** Reads a date of HTTP or of ISO 8601. */
function dateOf(text: string | null | undefined): number | undefined {
  if (!text || text.length > 100 || !/\d{2}:\d{2}/.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

function numberOf(text: string | null | undefined): number | undefined {
  const trimmed = text?.trim() ?? ''
  if (!/^-?\d{1,300}(?:\.\d{1,300})?$/.test(trimmed)) return undefined
  return Math.max(-LARGEST, Math.min(LARGEST * 10, Number(trimmed)))
}

function positive(number: number | undefined): number | undefined {
  return number !== undefined && number > 0 ? number : undefined
}
