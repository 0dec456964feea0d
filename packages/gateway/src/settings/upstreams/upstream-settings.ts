import { duration, headerFault, textOf, z } from 'diana-limiter/schema'
import { type HealthSettings, healthSchema } from './health-settings.ts'

const balances = ['round-robin', 'least-connections'] as const

/** Ways to choose an address, as the rule file names them. */
export type Balance = (typeof balances)[number]

/** The part that calls of one caller have in common, so that one address gets them all. */
export type StickySettings =
  | { readonly kind: 'cookie'; readonly name: string; readonly maxAgeMs?: number | undefined }
  | { readonly kind: 'hash'; readonly from: 'ip' | 'header' | 'cookie'; readonly name: string }

/** The number of second tries of calls that a service may have begun to serve. */
export interface RetryBudgetSettings {
  /** For every hundred calls of the last ten seconds. */
  readonly percent: number
  /** Besides, for each of these seconds. */
  readonly perSecond: number
}

/** The conditions under which calls to a service in trouble are refused here instead of sent. */
export interface ThrottleSettings {
  /** Calls are sent freely up to this multiple of those that the service accepts. */
  readonly ratio: number
  readonly windowMs: number
}

/** The way in which the addresses of a route share its calls. */
export interface UpstreamSettings {
  /** The weight of each address of `to`, in its order. */
  readonly weights: readonly number[]
  readonly balance: Balance
  readonly sticky?: StickySettings | undefined
  /** The time that an address that comes back or is new takes to get its whole share. */
  readonly slowStartMs: number
  readonly health: HealthSettings
  readonly retryBudget: RetryBudgetSettings
  /** The conditions under which calls are refused instead of sent; left out, all are sent. */
  readonly throttle?: ThrottleSettings | undefined
}

const cookieName = textOf(text =>
  /^[\w!#$%&'*+.^`|~-]{1,64}$/.test(text) ? undefined : 'must be the name of a cookie, such as diana-route',
)
const hashSource = textOf(text => {
  if (text === 'ip' || /^cookie:[\w!#$%&'*+.^`|~-]{1,64}$/.test(text)) return undefined
  return /^header:./.test(text) ? headerFault(text.slice(7)) : 'must be ip, header:NAME or cookie:NAME'
})

const stickySchema = z
  .strictObject({
    cookie: cookieName
      .optional()
      .describe('The name of a cookie that the gateway sets, and by which it knows the address.'),
    maxAge: duration.optional().describe('How long browsers keep the cookie; left out, until they are closed.'),
    hash: hashSource
      .optional()
      .describe('What calls have in common that stay together: ip, header:NAME or cookie:NAME.'),
  })
  .transform(({ cookie, maxAge, hash }, context): StickySettings => {
    if ((cookie === undefined) === (hash === undefined)) {
      const message =
        'must have either cookie (the gateway sets one of this name) or hash (ip, header:NAME, cookie:NAME)'
      context.addIssue({ code: 'custom', message })
      return z.NEVER
    }
    if (hash !== undefined && maxAge !== undefined) {
      context.addIssue({ code: 'custom', path: ['maxAge'], message: 'is for cookie only: leave it out' })
      return z.NEVER
    }
    if (cookie !== undefined) return { kind: 'cookie', name: cookie, maxAgeMs: maxAge }
    const [from, name = ''] = hash!.split(/:(.*)/s)
    return {
      kind: 'hash',
      from: from as 'ip' | 'header' | 'cookie',
      name: from === 'header' ? name.toLowerCase() : name,
    }
  })

/** The options of a route that are about its addresses. */
export const upstreamWords: {
  readonly balance: z.Schema<Balance>
  readonly sticky: z.Schema<StickySettings | undefined>
  readonly slowStart: z.Schema<number | undefined>
  readonly health: z.Schema<HealthSettings>
  readonly retryBudget: z.Schema<RetryBudgetSettings>
  readonly throttle: z.Schema<ThrottleSettings | undefined>
} = {
  balance: z
    .enum(balances)
    .default('round-robin')
    .describe('Which address is next: in turn by weight, or the one with the fewest calls under way for its weight.'),
  sticky: stickySchema.optional().describe('Calls of one caller go to one address as long as it is healthy.'),
  slowStart: duration
    .optional()
    .describe('How long an address that comes back or is new takes to get its whole share.'),
  health: healthSchema.prefault({}).describe('When an address that fails is left alone.'),
  retryBudget: z
    .strictObject({
      percent: z.number().min(0).max(100).default(20).describe('For every hundred calls of the last ten seconds.'),
      perSecond: z.int().min(0).max(10_000).default(3).describe('Besides, for each of these seconds.'),
    })
    .prefault({})
    .describe('How many second tries there may be of calls that a service may have begun to serve.'),
  throttle: z
    .strictObject({
      ratio: z
        .number()
        .min(1.1)
        .max(100)
        .default(2)
        .describe('Calls are sent freely up to so many times those that are accepted.'),
      window: duration.default(120_000).describe('How long calls are remembered; default: 2m.'),
    })
    .transform(({ ratio, window }) => ({ ratio, windowMs: window }))
    .optional()
    .describe('Sends a service in trouble fewer calls: those beyond its part are refused here.'),
}
