export function writeLua(from?: string): string[]
export function luaModules(from?: string): { readonly path: string; readonly text: string }[]
