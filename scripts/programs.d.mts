export interface Program {
  name: string
  home: string
  packages: Record<string, string>
  /** A command that succeeds if it is installed, for what is no program on the PATH. */
  check?: string[]
  /** Left out if no package manager here knows it. */
  isOptional?: boolean
}

export const programs: Program[]

export function findProgram(name: string, path: string): string | undefined

export function installPrograms(options: {
  path: string
  isRoot: boolean
  wanted?: Program[]
  policyFile?: string
}): Promise<void>
