/** Where the built packages are, each in a folder of its name. */
export const built: string
/** Builds the packages whose sources have changed. */
export function buildPackages(): Promise<void>
