export interface PackedPackage {
  readonly folder: string
  readonly name: string
  readonly version: string
  readonly tarball: string
}

export const published: readonly string[]
export function packPackages(folders: readonly string[], destination: string): Promise<PackedPackage[]>
