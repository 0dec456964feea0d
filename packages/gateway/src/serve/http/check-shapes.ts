import { z } from 'diana-limiter/schema'

/** A call as a program describes it. */
export interface AskedCall {
  readonly method: string
  readonly path: string
  readonly host?: string | undefined
  readonly ip?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly attributes?: Readonly<Record<string, string>> | undefined
  readonly cost: number
  readonly rules?: readonly string[] | undefined
}

/** One call, or several. */
export type CheckQuestion = AskedCall | { readonly calls: readonly AskedCall[]; readonly together: boolean }

const name = z.string().min(1).max(256)
const maxCalls = 100
const maxCost = 1_000_000_000

const token = z.string().regex(/^[!#$%&'*+.^_`|~\w-]{1,32}$/, 'must be a method such as GET')

export const askedCall: z.Schema<AskedCall> = z.strictObject({
  method: token.default('GET'),
  path: z.string().min(1).max(8192).default('/').describe('Path and query as the caller sent them.'),
  host: z.string().max(262).optional(),
  ip: z.string().max(64).optional().describe('The address of the caller.'),
  headers: z.record(name, z.string().max(8192)).optional(),
  attributes: z.record(name, z.string().max(1024)).optional().describe('What the program knows: an account, a plan.'),
  cost: z.int().min(0).max(maxCost).default(1).describe('0 asks and counts nothing.'),
  rules: z.array(name).min(1).max(100).optional().describe('Ids of rules: the call is decided by these alone.'),
})

export const checkQuestion: z.Schema<CheckQuestion> = z.union([
  z.strictObject({
    calls: z.array(askedCall).min(1).max(maxCalls),
    together: z.boolean().default(false).describe('true: all of them are counted, or, if one is refused, none.'),
  }),
  askedCall,
])

const milliseconds = z.number().min(0).nullable().describe('null: no moment is known.')

const decision = z.object({
  rule: z.string(),
  limit: z.number(),
  periodMs: z.number(),
  allowed: z.boolean(),
  shadow: z.boolean(),
  remaining: z.number(),
  resetAfterMs: milliseconds,
  retryAfterMs: milliseconds,
})

/** The outcome of a checked call. */
export const checkedCall: z.Schema = z.object({
  allowed: z.boolean(),
  rule: z.string().optional().describe('The rule that refused.'),
  reason: z.string().optional(),
  retryAfterMs: milliseconds,
  status: z.int().describe('The status to answer with: 200, or that of the refusal.'),
  headers: z.record(z.string(), z.string()).describe('The headers to answer with.'),
  body: z.string().optional().describe('The body of a refusal.'),
  decisions: z.array(decision),
})

export const checkAnswer: z.Schema = z.union([
  z.object({ allowed: z.boolean().describe('Whether all are allowed.'), results: z.array(checkedCall) }),
  checkedCall,
])
