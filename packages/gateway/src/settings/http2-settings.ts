import { z } from 'diana-limiter/schema'

/** Whether callers may use HTTP/2. */
export const http2Schema: z.DefaultSchema<z.BooleanSchema> = z
  .boolean()
  .default(true)
  .describe('HTTP/2 for callers: by ALPN over TLS, with prior knowledge over plain TCP; default: true.')
