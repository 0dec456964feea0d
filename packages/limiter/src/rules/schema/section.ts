import * as z from '../../shapes/index.ts'

/** A top-level section of the rule file that another program reads, such as the gateway's. */
export interface Section {
  readonly name: string
  /** A schema of any library that follows Standard Schema and checks values at once. */
  readonly schema: z.AnySchema
  /** The module that exports it, so that another thread can read it too; its values must then be plain ones. */
  readonly from?: { readonly module: string; readonly name: string } | undefined
}

/** Sections of the same file that belong to Diana's other programs. */
const foreignSections: readonly Section[] = [
  { name: 'gateway', schema: z.unknown() },
  { name: 'serve', schema: z.unknown() },
]

/** Returns all sections that a file may have: those that a program reads, and those of Diana's other programs. */
export function sectionsWith(given: readonly Section[] = []): readonly Section[] {
  const names = given.map(({ name }) => name)
  return [...given, ...foreignSections.filter(({ name }) => !names.includes(name))]
}
