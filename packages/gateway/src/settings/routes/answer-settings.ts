import { textOf, z } from 'diana-limiter/schema'
import { headersToSet } from './header-settings.ts'
import { pathFault } from './match-settings.ts'

/** The gateway's own answer. */
export interface AnswerSettings {
  readonly status: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
}

/** The address that callers are sent to instead. */
export interface RedirectSettings {
  readonly to: string
  readonly status: number
  readonly keepPath: boolean
  readonly keepQuery: boolean
}

const bodiless: readonly number[] = [204, 205, 304]

export const answerSchema: z.Schema<AnswerSettings> = z
  .strictObject({
    status: z.int().min(200).max(599).default(200).describe('Default: 200.'),
    body: z.string().max(65_536).default('').describe('Text, as it is sent.'),
    headers: headersToSet.default({}).describe('Content-Type is text/plain unless it is given here.'),
  })
  .superRefine(({ status, body }, context) => {
    if (body === '' || !bodiless.includes(status)) return
    context.addIssue({ code: 'custom', path: ['body'], message: `has no place in an answer ${status}: leave it out` })
  })

/** Returns what is wrong with the address that callers are sent to. */
function targetFault(text: string): string | undefined {
  // two slashes would begin the name of another host
  if (text.startsWith('/')) return pathFault(text)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if ((url?.protocol !== 'http:' && url?.protocol !== 'https:') || /[^\x21-\x7e]|\\/.test(text)) {
    return 'must be a path such as /new, or an address such as https://new.example.com'
  }
  if (url.username !== '' || url.password !== '') return 'must be without a name and password'
  return url.search === '' && url.hash === '' ? undefined : 'must end with its path: take out what follows ? or #'
}

const statuses: readonly number[] = [301, 302, 303, 307, 308]

export const redirectSchema: z.Schema<RedirectSettings> = z.strictObject({
  to: textOf(targetFault, 2048).describe('A path of this host, or an address: https://new.example.com.'),
  status: z
    .int()
    .refine(status => statuses.includes(status), { error: 'must be 301, 302, 303, 307 or 308' })
    .default(307)
    .describe('307 and 308 keep the method, 301 and 308 are remembered by callers; default: 307.'),
  keepPath: z.boolean().default(true).describe("Whether what follows the route's path is added; default: true."),
  keepQuery: z.boolean().default(true).describe('Whether the query is added; default: true.'),
})
