package oal.stream.codec;

/** Identity of a name across batches: each batch has its own dictionary, so an index says nothing between batches. */
public final class Names {
    private Names() {}

    /** 64-bit FNV-1a over the characters. */
    public static long hash(String name) {
        long h = 0xcbf29ce484222325L;
        for (int i = 0; i < name.length(); i++) h = (h ^ name.charAt(i)) * 0x100000001b3L;
        return h;
    }
}
