export function nextVersion(current: string, step: string): string
