import { z } from 'zod'

/** An address or a name to listen on. */
export const hostSchema: z.ZodType<string> = z.string().min(1).max(255)
export const portSchema: z.ZodType<number> = z.int().min(0).max(65_535)
