import { z } from 'zod'

/** A part of the rule file that another program reads, under a word of its own at the top: the gateway's routes. */
export interface Section {
  readonly name: string
  readonly schema: z.ZodType
}

/** Words that stand in the same file, but are not for whoever reads rules alone. */
export const foreignSections: readonly Section[] = [{ name: 'gateway', schema: z.unknown() }]
