import * as z from 'zod'

/** A top-level section of the rule file that another program reads, such as the gateway's. */
export interface Section {
  readonly name: string
  readonly schema: z.ZodType
  /** Where it is exported, so that another thread can read it too; its values must then be plain ones. */
  readonly from?: { readonly module: string; readonly name: string } | undefined
}

/** Sections of the same file that belong to Diana's other programs. */
export const foreignSections: readonly Section[] = [{ name: 'gateway', schema: z.unknown() }]
