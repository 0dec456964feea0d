import { duration, z } from 'diana-limiter/schema'

/** An address or a name to listen on. */
export const hostSchema: z.Schema<string> = z.string().min(1).max(255)
export const portSchema: z.Schema<number> = z.int().min(0).max(65_535)

/** Node takes a timer that is longer for one that is over at once. */
const longestTimerMs = 2 ** 31 - 1
const dayMs = 86_400_000

/** A duration for which a timer is set; Node ends longer timers at once, so this is the longest one. */
export const timerDuration: z.Schema<number, string> = duration.transform(ms => Math.min(ms, longestTimerMs))

/** The time between two things that are done again and again. */
export const intervalDuration: z.Schema<number, string> = duration.refine(ms => ms <= dayMs, {
  error: 'must be at most 1d',
})

const unitBytes: Readonly<Record<string, number>> = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }
const pattern = /^(\d{1,12})(B|KiB|MiB|GiB)$/
const remedy = 'must be a size, a whole number with a unit: 512B, 16KiB, 10MiB or 1GiB'

/** Returns a size such as 10MiB, read as bytes, within bounds. */
export function sizeOf(bounds: { readonly least: string; readonly most: string }): z.Schema<number, string> {
  const [least, most] = [parseSize(bounds.least)!, parseSize(bounds.most)!]
  return z
    .string({ error: remedy })
    .regex(pattern, { abort: true, error: remedy })
    .transform((text, context) => {
      const bytes = parseSize(text)!
      if (bytes >= least && bytes <= most) return bytes
      context.addIssue({ code: 'custom', message: `must be from ${bounds.least} to ${bounds.most}, not ${text}` })
      return z.NEVER
    })
}

function parseSize(text: string): number | undefined {
  const [, digits, unit] = pattern.exec(text) ?? []
  return unit === undefined ? undefined : Number(digits) * unitBytes[unit]!
}
