import { duration } from 'diana-limiter/words'
import { z } from 'zod'

/** How names of services are followed. */
export interface DnsSettings {
  readonly intervalMs: number
}

export const dnsSchema: z.ZodType<DnsSettings> = z
  .strictObject({
    interval: duration.default(5000).describe('How often each name is looked up again; default: 5s.'),
  })
  .transform(({ interval }) => ({ intervalMs: interval }))
