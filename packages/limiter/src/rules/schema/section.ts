import { z } from 'zod'

/** A part of the rule file that another program reads, under a word of its own at the top: the gateway's routes. */
export interface Section {
  readonly name: string
  readonly schema: z.ZodType
  /** Where it is exported, so that another thread can read it too; its values must then be plain ones. */
  readonly from?: { readonly module: string; readonly name: string } | undefined
}

/** Words that stand in the same file, but are not for whoever reads rules alone. */
export const foreignSections: readonly Section[] = [{ name: 'gateway', schema: z.unknown() }]
