export interface Program {
  name: string
  home: string
  packages: Record<string, string>
}

export const programs: Program[]

export function findProgram(name: string, path: string): string | undefined

export function installPrograms(options: {
  path: string
  isRoot: boolean
  wanted?: Program[]
  policyFile?: string
}): Promise<void>
