import { z } from 'diana-limiter/schema'

/** An address or a name to listen on. */
export const hostSchema: z.Schema<string> = z.string().min(1).max(255)
export const portSchema: z.Schema<number> = z.int().min(0).max(65_535)
