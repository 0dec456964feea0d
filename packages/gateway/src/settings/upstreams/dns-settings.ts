import { z } from 'diana-limiter/schema'
import { intervalDuration } from '../timer-duration.ts'

/** How names of services are followed. */
export interface DnsSettings {
  readonly intervalMs: number
}

export const dnsSchema: z.Schema<DnsSettings> = z
  .strictObject({
    interval: intervalDuration.default(5000).describe('How often each name is looked up again; default: 5s.'),
  })
  .transform(({ interval }) => ({ intervalMs: interval }))
