import { duration, listOf, textOf, z } from 'diana-limiter/schema'

/** The pages of other origins that may read answers. */
export interface CorsSettings {
  /** Origins such as https://app.example.com; `*` alone is every one. */
  readonly origins: readonly string[]
  /** True if cookies and certificates of the caller are sent along. */
  readonly credentials: boolean
  /** The time for which a browser may keep the answer to its question before a call. */
  readonly maxAgeMs: number
}

function originFault(text: string): string | undefined {
  if (text === '*') return undefined
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return 'is not an origin: write one such as https://app.example.com, or "*" for every one'
  }
  return url.origin === text ? undefined : `must be an origin without a path: write "${url.origin}"`
}

export const corsSchema: z.Schema<CorsSettings> = z
  .strictObject({
    origins: listOf(textOf(originFault, 255), { min: 1, max: 1000 }).describe(
      'Origins whose pages may read answers: https://app.example.com; "*" is every one.',
    ),
    credentials: z.boolean().default(false).describe('true lets pages send cookies along.'),
    maxAge: duration.default(600_000).describe('How long browsers keep the answer to a preflight; default: 10m.'),
  })
  .superRefine(({ origins, credentials }, context) => {
    const isAny = origins.includes('*')
    const fault =
      isAny && origins.length > 1
        ? 'has "*" beside other origins: leave them out'
        : isAny && credentials
          ? 'must name the origins where credentials are allowed: "*" is not enough'
          : undefined
    if (fault) context.addIssue({ code: 'custom', path: ['origins'], message: fault })
  })
  .transform(({ maxAge, ...words }) => ({ ...words, maxAgeMs: maxAge }))
