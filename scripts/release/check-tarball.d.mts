export function checkTarball(tarball: string): Promise<string[]>
