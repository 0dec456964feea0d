import { z } from 'diana-limiter/schema'

/** The version of HTTP that a service is sent. */
export type ServiceProtocol = 'http1' | 'http2'

export const protocolSchema: z.OptionalSchema<z.EnumSchema<'http1' | 'http2'>> = z
  .enum(['http1', 'http2'])
  .optional()
  .describe(
    'What the service speaks; default: http1 over http, and over https what it chooses (ALPN). gRPC needs http2.',
  )
